"""How the command tells diagnostics: lines for a person, or JSON for a collector, on standard error.

structlog is imported with the first line: most commands end without one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any

from agent_runtime_ref.cli.terminal import shown

FORMATS = ("console", "json")
VARIABLE = "AGENT_RUNTIME_LOG_FORMAT"


def format_of(option: str | None) -> str:
    """Return the format that the option or else the environment names.

    Raises:
        UsageError: the environment names one that there is not.
    """
    named = option or os.environ.get(VARIABLE) or FORMATS[0]
    if named not in FORMATS:
        from agent_runtime_ref.errors import UsageError

        raise UsageError(f"{VARIABLE} is `{named}`; it may be {' or '.join(FORMATS)}")
    return named


class Output:
    """Writes lines in one format, to what is standard error when there is something to say."""

    def __init__(self, form: str) -> None:
        self._form = form

    def __call__(self, level: str, name: str, fields: Mapping[str, object]) -> None:
        """Write one line."""
        if sys.stderr is None:
            return
        getattr(_logger(self._form), level)(name, **fields)


def traceback_of(failure: BaseException) -> None:
    """Show on standard error where an error comes from that ended no command; for `--debug`."""
    import traceback

    if sys.stderr is not None:
        traceback.print_exception(failure)


def _logger(form: str) -> Any:
    import structlog

    renderer: Any = (
        structlog.processors.JSONRenderer(sort_keys=False)
        if form == "json"
        else structlog.dev.ConsoleRenderer(colors=_colours(), sort_keys=False)
    )
    return structlog.wrap_logger(
        structlog.PrintLogger(file=sys.stderr),
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if form == "json" else [_for_a_terminal]),
            renderer,
        ],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _for_a_terminal(logger: object, method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """Make every text harmless for a terminal; in JSON the quoting does so."""
    return {name: shown(value) if isinstance(value, str) else value for name, value in event.items()}


def _colours() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ
