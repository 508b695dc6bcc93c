"""What a policy may be asked: each entrypoint has a schema, and only what follows it reaches an engine.

With documents of a known shape the engines agree; with others they need not, and a rule that looks at a field
which is not there may fail to fire. The same schemas type-check the rules (`opa check --schema`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime_ref.validation.schemas import compiled

__all__ = ["INPUT_SCHEMAS", "input_problem"]

INPUT_SCHEMAS = {"memory.read": "policy_read_input", "memory.write": "policy_write_input"}


def input_problem(entrypoint: str, document: Mapping[str, Any]) -> str | None:
    """Return the first thing that is wrong with a gate's question, as path and sentence; None if nothing is.

    That an integer is no `1.0` is left to whoever reads documents from outside (`validation.check`): the
    numbers of a gate are its own, and looking at each one would cost as much as the decision.
    """
    name = INPUT_SCHEMAS[entrypoint]
    if compiled(name).accepts_roughly(document):
        return None
    from agent_runtime_ref.validation import findings

    found = findings(name, document)
    return found[0].sentence if found else f"{name} $: is not valid"
