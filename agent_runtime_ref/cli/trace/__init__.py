"""`trace`: what the decision log says about a trace or a record, and whether it can be believed."""

from agent_runtime_ref.cli.groups import Group

_GROUP = Group(
    name="trace",
    summary="look at what the decision log says, and whether it is the one that was written",
    shown="trace inspect trace-001 --store sqlite:memory.db",
    members={
        "inspect": "inspect",
        "verify": "verify",
        "anchor": "anchor",
        "exposure": "exposure",
        "export": "export",
        "reconcile": "reconcile",
    },
)
add_parser, run = _GROUP.add_parser, _GROUP.run
