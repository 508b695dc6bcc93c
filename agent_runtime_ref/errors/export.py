"""Events that cannot leave."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class CursorError(GovernanceError):
    """The file that says how far a log was delivered is of no use, or is in use."""

    code = "export.cursor"
    message = "cursor `{path}`: {problem}"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path=path, problem=problem)


class LogNotContinuedError(GovernanceError):
    """A log does not go on from the line that was delivered last: it was cut at its end, or made anew."""

    code = "export.log_not_continued"
    message = (
        "chain {chain} does not go on from line {seq}, which was delivered last: {problem}; look at it with "
        "`trace verify`, and remove the cursor `{path}` to deliver the whole log"
    )

    def __init__(self, chain: str, seq: int, problem: str, path: str) -> None:
        super().__init__(chain=chain, seq=seq, problem=problem, path=path)
