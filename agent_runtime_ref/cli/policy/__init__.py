"""`policy`: what the policies decide, how they are tested, and what a change of them would change."""

from agent_runtime_ref.cli.groups import Group

_GROUP = Group(
    name="policy",
    summary="decide by the policies, test, review and build them, and see what a change changes",
    shown="policy decide read --input input.json",
    members={
        "build": "build",
        "decide": "decide",
        "diff": "diff",
        "replay": "replay",
        "review": "review",
        "test": "test",
    },
)
add_parser, run = _GROUP.add_parser, _GROUP.run
