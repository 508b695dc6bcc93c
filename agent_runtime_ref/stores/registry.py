"""From a store's address to the store."""

from __future__ import annotations

import stat
from importlib.util import find_spec
from pathlib import Path

from agent_runtime_ref.errors import StoreAddressError, StoreCapabilityError
from agent_runtime_ref.store_address import shown
from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.telemetry.logfile import Rotation

KNOWN = (
    "memory:, seeds:[PATH], jsonl:PATH, file:PATH, sqlite:PATH, postgresql://USER@HOST/DATABASE and"
    " redis://USER@HOST/NUMBER"
)

_EXAMPLES = {"sqlite": "sqlite:memory.db", "jsonl": "jsonl:memory.jsonl", "file": "file:memory.json"}


def open_store(
    url: str, *, log: Path | None = None, rotation: Rotation | None = None, must_exist: bool = False
) -> Store:
    """Return the store at `url`; `log` names the log file of a store that keeps no log itself.

    `rotation` says when that file is closed and another one begun.

    `must_exist` is for those who only look: no file is made, and an empty one is not turned into a store.

    Raises:
        StoreAddressError: the address names no kind of store, or not all of one.
        StoreCapabilityError: the store keeps its own log, so that `log` or `rotation` could not be honoured.
        StoreVersionError, StoreDamagedError: the file is newer, damaged or another program's.
    """
    scheme, colon, path = url.partition(":")
    if rotation is not None and log is None:
        problem = "there is no log file that could be rotated; name one with log, or leave rotation out"
        raise StoreCapabilityError(shown(url), problem)
    if colon and scheme == "memory":
        if path:
            raise StoreAddressError(shown(url), "a store in memory has no path")
        return InMemoryStore(log=log, rotation=rotation)
    if colon and scheme in ("jsonl", "sqlite", "file"):
        if log is not None:
            raise StoreCapabilityError(shown(url), "it keeps its decision log itself; leave the log file out")
        file = _file(url, scheme, path, must_exist=must_exist)
        # Late, because a command that reads no file must not pay for it.
        if scheme == "sqlite":
            from agent_runtime_ref.stores.sqlite import SqliteStore

            return SqliteStore(file, must_exist=must_exist)
        if scheme == "file":
            from agent_runtime_ref.stores.document import DocumentStore

            return DocumentStore(file)
        from agent_runtime_ref.stores.jsonl import JsonlStore

        return JsonlStore(file)
    if colon and scheme == "postgresql":
        return _postgres(url, log)
    if colon and scheme in ("redis", "rediss"):
        return _redis(url, log, must_exist=must_exist)
    raise StoreAddressError(shown(url), f"known are {KNOWN}")


def _postgres(url: str, log: Path | None) -> Store:
    require_driver(url)
    if log is not None:
        raise StoreCapabilityError("postgresql:", "it keeps its decision log itself; leave the log file out")
    # Late, because the driver is an extra, and no other store must pay for it.
    from agent_runtime_ref.stores.postgres import PostgresStore

    return PostgresStore(url)


def _redis(url: str, log: Path | None, *, must_exist: bool) -> Store:
    if find_spec("redis") is None:
        raise StoreCapabilityError("redis:", "its driver is not installed; pip install '.[redis]'")
    if log is not None:
        raise StoreCapabilityError("redis:", "it keeps its decision log itself; leave the log file out")
    # Late, as above.
    from agent_runtime_ref.stores.redis import RedisStore

    return RedisStore(url, must_exist=must_exist)


def require_driver(url: str) -> None:
    """Return if `url` may be handed to the PostgreSQL store, which is an extra.

    Raises:
        StoreAddressError: it is another kind of address.
        StoreCapabilityError: the driver is not installed.
    """
    if not url.startswith("postgresql:"):
        raise StoreAddressError(shown(url), "write it as postgresql://USER@HOST:PORT/DATABASE")
    if any(find_spec(name) is None for name in ("psycopg", "psycopg_pool")):
        problem = "its driver is not installed; pip install '.[postgres]'"
        raise StoreCapabilityError("postgresql:", problem)


def _file(url: str, scheme: str, path: str, *, must_exist: bool) -> Path:
    if path.startswith("//"):
        raise StoreAddressError(shown(url), f"a file is named without `//`, as in {_EXAMPLES[scheme]}")
    if not path.strip() or "\0" in path:
        raise StoreAddressError(shown(url), f"name a file, as in {_EXAMPLES[scheme]}")
    if path.strip() == ":memory:":
        raise StoreAddressError(shown(url), "a store in memory is memory:")
    file = Path(path)
    _refuse_other_kinds(url, file)
    if not file.absolute().parent.is_dir():
        raise StoreAddressError(shown(url), f"there is no folder {file.absolute().parent}")
    if must_exist and not file.is_file():
        raise StoreAddressError(shown(url), "there is no such file")
    if must_exist and not file.stat().st_size:
        raise StoreAddressError(shown(url), "the file is empty; there is no store in it")
    return file


def _refuse_other_kinds(url: str, file: Path) -> None:
    """Refuse what is there and is no file: a store would put one in the place of a pipe or a device.

    Raises:
        StoreAddressError: it is a folder, a pipe or a device, or nobody can look at it.
    """
    try:
        mode = file.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreAddressError(shown(url), (error.strerror or str(error)).lower()) from error
    if stat.S_ISDIR(mode):
        raise StoreAddressError(shown(url), "this is a folder; name a file")
    if not stat.S_ISREG(mode):
        raise StoreAddressError(shown(url), "this is a pipe or a device; name a file")
