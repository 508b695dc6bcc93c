"""A refusal is an answer too: its decision goes to standard output, the sentence to standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_runtime_ref.cli.output import print_document
from agent_runtime_ref.errors import PolicyDeniedError


@contextmanager
def reported(style: str = "json") -> Iterator[None]:
    """Print the decision of whatever is refused within; the error goes on, to become the exit code."""
    try:
        yield
    except PolicyDeniedError as refused:
        # A table is for people, who read the sentence. An engine that failed may have left no decision.
        if style != "table" and refused.decision is not None:
            print_document(refused.decision.to_document(), "yaml" if style == "yaml" else "json")
        raise
