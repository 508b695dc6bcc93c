"""P_t, the state of a session: what a user asked for in this thread, kept, merged, and enforced by code.

`load`, `merge` and `save` are the three steps of a turn; `Sessions` has them over one memory and one folder.
"""

from __future__ import annotations

from agent_runtime_ref.session_state.current import Standing, TurnConstraints, current, in_turn
from agent_runtime_ref.session_state.enforcer import Enforced, Enforcer, Verdict
from agent_runtime_ref.session_state.items import ItemView, view_of
from agent_runtime_ref.session_state.kept import TTL, Turn
from agent_runtime_ref.session_state.merging import Merged, merge, merged
from agent_runtime_ref.session_state.money import Money, amounts_in
from agent_runtime_ref.session_state.places import sessions_folder
from agent_runtime_ref.session_state.render import render, rendered
from agent_runtime_ref.session_state.sessions import Loaded, MergeReceipt, Sessions
from agent_runtime_ref.session_state.single import load, save
from agent_runtime_ref.session_state.state import FINDINGS_MAX, SessionState
from agent_runtime_ref.session_state.words import speaks_of

__all__ = [
    "FINDINGS_MAX",
    "TTL",
    "Enforced",
    "Enforcer",
    "ItemView",
    "Loaded",
    "MergeReceipt",
    "Merged",
    "Money",
    "SessionState",
    "Sessions",
    "Standing",
    "Turn",
    "TurnConstraints",
    "Verdict",
    "amounts_in",
    "current",
    "in_turn",
    "load",
    "merge",
    "merged",
    "render",
    "rendered",
    "save",
    "sessions_folder",
    "speaks_of",
    "view_of",
]
