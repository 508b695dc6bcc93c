"""Golden cases: what an engine must answer before it is trusted with a real question.

Few and cheap, since they are evaluated whenever an engine is made. Any policy must refuse an empty input;
a foreign bundle need not permit what ours does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from agent_runtime_ref.errors import BundleError, EngineFailureError

__all__ = ["check_golden"]

Evaluate = Callable[[str, str], Mapping[str, Any]]

REFUSED = (
    ("memory.read", "{}", "allow"),
    ("memory.write", "{}", "allowed"),
    ("memory.write", '{"operation":"write","candidates":[{}]}', "allowed"),
    ("memory.write", '{"operation":"delete","candidates":[{}]}', "allowed"),
    ("memory.write", '{"operation":"release","candidates":[{}]}', "allowed"),
)


def check_golden(evaluate: Evaluate) -> None:
    """Return if the policies refuse what every policy must refuse.

    Raises:
        BundleError: the reason is that of the engine's failure, or engine_wrong_type where an empty input was
            permitted.
    """
    for entrypoint, document, name in REFUSED:
        try:
            answer = evaluate(entrypoint, document)
        except EngineFailureError as error:
            raise BundleError(
                error.reason, f"`{entrypoint}` fails on the trial input {document}: {error.detail}"
            ) from error
        # Strictly: a policy whose answer has another shape is no policy of ours.
        if answer.get(name) is not False and answer.get(name) != []:
            raise BundleError("engine_wrong_type", f"{entrypoint} does not refuse the input {document}")
