"""`quarantine`: the review queue of records that were taken in but that nobody reads yet."""

from agent_runtime_ref.cli.groups import Group

_GROUP = Group(
    name="quarantine",
    summary="work the review queue",
    shown="quarantine list --store sqlite:memory.db",
    members={"list": "listing", "show": "showing", "release": "releasing", "reject": "rejecting"},
)
add_parser, run = _GROUP.add_parser, _GROUP.run
