"""How much an engine may be asked at once: the same for each, so that none lets in more than another."""

from __future__ import annotations

import json

from agent_runtime_ref.errors import EngineFailureError

__all__ = ["CANDIDATES_MAX", "INPUT_BYTES_MAX", "check_size"]

CANDIDATES_MAX = 1_000
INPUT_BYTES_MAX = 512 * 1024


def check_size(document: str) -> None:
    """Refuse what would hold an engine for too long.

    Raises:
        EngineFailureError: reason input_too_large.
    """
    size = len(document) if document.isascii() else len(document.encode("utf-8", "surrogatepass"))
    if size > INPUT_BYTES_MAX:
        raise EngineFailureError("input_too_large", f"{size} bytes, at most {INPUT_BYTES_MAX}")
    # A list of a thousand has 999 commas, so that a usual document need not be parsed a second time.
    if document.count(",") < CANDIDATES_MAX:
        return
    try:
        value = json.loads(document)
    except ValueError as error:
        raise EngineFailureError("engine_exception", "the input is no JSON") from error
    candidates = value.get("candidates") if isinstance(value, dict) else None
    if isinstance(candidates, list) and len(candidates) > CANDIDATES_MAX:
        raise EngineFailureError("input_too_large", f"{len(candidates)} candidates, at most {CANDIDATES_MAX}")
