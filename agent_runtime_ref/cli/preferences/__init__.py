"""`preferences`: what a user likes and dislikes beyond one conversation, for the user himself."""

from agent_runtime_ref.cli.groups import Group

_GROUP = Group(
    name="preferences",
    summary="a user's long-term preferences: what he likes and dislikes beyond one conversation",
    shown="preferences list",
    members={
        "list": "listing",
        "add": "adding",
        "forget": "forgetting",
        "export": "exporting",
        "clean": "cleaning",
    },
)
add_parser, run = _GROUP.add_parser, _GROUP.run
