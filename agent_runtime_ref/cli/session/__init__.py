"""`session`: what a user asked for in one thread, and what the log holds of a session."""

from agent_runtime_ref.cli.groups import Group

_GROUP = Group(
    name="session",
    summary="what is known of a session: its constraints, and what the log holds of it",
    shown="session show thread-1",
    members={"show": "showing", "clear": "clearing", "export": "export"},
)
add_parser, run = _GROUP.add_parser, _GROUP.run
