"""What runs on the server: each of these scripts happens as one, with nothing between its steps.

All of them look first whether the store is still the one that was opened. A server that was started anew
without its data has another one, or none, and answers `lost`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

# Read one moment of one or more tenants: records by id, dedup digest and index, with counts and marks.
_LOAD = """
local prefix, request = ARGV[1], cjson.decode(ARGV[3])
if redis.call('HGET', prefix .. 'store', 'id') ~= ARGV[2] then return {'lost'} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local tenants = request.tenants
if request.all then
  tenants = {}
  for _, name in ipairs(redis.call('SMEMBERS', prefix .. 'tenants')) do
    tenants[#tenants + 1] =
      {name = name, ids = {}, digests = {}, indexes = {'a'}, slots = {}, marks = {}}
  end
end
local total, parts = 0, {}
local function fields(key, names)
  return #names > 0 and redis.call('HMGET', key, unpack(names)) or {}
end
local function many(key, names)
  local found = {}
  for start = 1, #names, 500 do
    local part = {}
    for at = start, math.min(start + 499, #names) do part[#part + 1] = names[at] end
    for _, value in ipairs(fields(key, part)) do found[#found + 1] = value end
  end
  return found
end
for _, one in ipairs(tenants) do
  local base, seen, ids, holders, docs = prefix .. one.name .. ':', {}, {}, {}, {}
  local function take(id)
    if id and not seen[id] then seen[id] = true; ids[#ids + 1] = id end
  end
  for _, id in ipairs(one.ids) do take(id) end
  for at, digest in ipairs(one.digests) do
    holders[at] = redis.call('GET', base .. 'd:' .. digest)
    take(holders[at])
  end
  for _, index in ipairs(one.indexes) do
    for _, id in ipairs(redis.call('ZRANGEBYSCORE', base .. index, now, '+inf')) do take(id) end
  end
  total = total + #ids
  if total > request.most then return {'many'} end
  for at, id in ipairs(ids) do docs[at] = redis.call('GET', base .. 'r:' .. id) end
  parts[#parts + 1] = {
    one.name, redis.call('HMGET', base .. 'h', 'n', 'ws', 'wh'), ids, docs, holders,
    many(base .. 'v', one.slots), many(base .. 't', one.marks)}
end
return {'ok', redis.call('HGET', prefix .. 'store', 'lines'), parts}
"""

# Change what is there if all that was seen still stands; everything is looked at before anything is touched,
# because a script that fails on its way is not taken back.
_CHANGE = """
local prefix, token = ARGV[1], ARGV[1] .. 'o:' .. ARGV[3]
if redis.call('HGET', prefix .. 'store', 'id') ~= ARGV[2] then return {'lost'} end
if redis.call('EXISTS', token) == 1 then return {'ok'} end
local wants = {put = 'string', swap = 'string', drop = 'string', join = 'zset', part = 'zset',
  set = 'hash', unset = 'hash', count = 'hash', line = 'list', name = 'set', tail = 'list', is = 'hash'}
local width = {put = 3, swap = 2, drop = 1, join = 3, part = 2, set = 3, unset = 2, count = 3, line = 2,
  name = 2, tail = 2, is = 3}
local at, types = 4, {}
while at <= #ARGV do
  local step, key = ARGV[at], ARGV[at + 1]
  local found = types[key] or redis.call('TYPE', key).ok
  types[key] = found
  if found ~= 'none' and found ~= wants[step] then return {'type', key} end
  if step == 'is' and (redis.call('HGET', key, ARGV[at + 2]) or '0') ~= ARGV[at + 3] then
    return {'moved', redis.call('HMGET', key, 'ws', 'wh', 'rs', 'rh')}
  end
  if step == 'tail' and redis.call('LLEN', key) ~= tonumber(ARGV[at + 2]) then return {'tail', key} end
  at = at + 1 + width[step]
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local act = {}
function act.put(key, value, ttl)
  if ttl == '' then redis.call('SET', key, value) else redis.call('SET', key, value, 'PX', ttl) end
end
function act.swap(key, value) redis.call('SET', key, value, 'XX', 'KEEPTTL') end
function act.drop(key) redis.call('DEL', key) end
function act.join(key, member, ttl)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', '(' .. now)
  redis.call('ZADD', key, ttl == '' and '+inf' or now + ttl, member)
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2]
  if last == 'inf' then redis.call('PERSIST', key) else redis.call('PEXPIREAT', key, last) end
end
function act.part(key, member) redis.call('ZREM', key, member) end
function act.set(key, field, value) redis.call('HSET', key, field, value) end
function act.unset(key, field) redis.call('HDEL', key, field) end
function act.count(key, field, by) redis.call('HINCRBY', key, field, by) end
function act.line(key, text) redis.call('RPUSH', key, text) end
function act.name(key, member) redis.call('SADD', key, member) end
at = 4
while at <= #ARGV do
  local step = ARGV[at]
  if act[step] then act[step](ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]) end
  at = at + 1 + width[step]
end
redis.call('SET', token, '1', 'PX', 300000)
return {'ok'}
"""

# Read fields of one hash; with a fourth and fifth argument, make the one that is missing.
_FIELD = """
if redis.call('HGET', ARGV[1] .. 'store', 'id') ~= ARGV[2] then return {'lost'} end
if ARGV[5] then redis.call('HSETNX', ARGV[3], ARGV[4], ARGV[5]) end
return {'ok', redis.call('HGET', ARGV[3], ARGV[4])}
"""

# Make a store where there is none, and return what is there; without a third argument, make nothing.
_OPEN = """
local key = ARGV[1] .. 'store'
if ARGV[3] and redis.call('EXISTS', key) == 0 then
  redis.call('HSET', key, 'format', ARGV[2], 'id', ARGV[3], 'key', ARGV[4], 'lines', 0, 'forgets', 0)
end
return redis.call('HMGET', key, 'format', 'id', 'key')
"""


@dataclass(frozen=True, slots=True)
class Script:
    """A script and the digest by which a server knows it."""

    text: str
    sha: str = field(default="")

    @classmethod
    def of(cls, text: str) -> Script:
        """The script of a text."""
        return cls(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


LOAD, CHANGE, FIELD, OPEN = map(Script.of, (_LOAD, _CHANGE, _FIELD, _OPEN))
