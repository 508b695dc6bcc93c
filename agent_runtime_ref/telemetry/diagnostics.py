"""Diagnostics: what an operator should hear about, through structlog, without content.

structlog takes half a second to import, so it is imported when there is something to say. The library
never configures it; the command and the application do. Unconfigured, it would print to standard
output, which belongs to data, so that case goes to standard error.
"""

from __future__ import annotations

import sys
from typing import Any


def warning(name: str, **fields: object) -> None:
    """Report something that went wrong without changing what was decided."""
    _logger().warning(name, **fields)


def error(name: str, **fields: object) -> None:
    """Report an alarm: a gate refused because something is broken."""
    _logger().error(name, **fields)


def _logger() -> Any:
    import structlog

    if structlog.is_configured():
        return structlog.get_logger("agent_runtime_ref")
    return structlog.wrap_logger(structlog.PrintLogger(file=sys.stderr))
