"""Text that came from outside, made harmless for a terminal.

Memory content is somebody's words. Printed as it is, it could move the cursor, rename the window or turn
the reading direction; so whatever a terminal acts on, or an eye cannot see, is shown as an escape.
"""

from __future__ import annotations

import sys

# DEL and C1, direction marks and overrides, invisible joiners, line separators, lone surrogates, tags.
# A table of code points costs less at the start, which every command pays for, than a regular expression.
UNSEEN = (
    *range(0x7F, 0xA0),
    *(0xAD, 0x61C, 0x180E, 0x200B, 0x200E, 0x200F, 0xFEFF),
    *range(0x2028, 0x202F),
    *range(0x2060, 0x2070),
    *range(0xFFF9, 0xFFFC),
    *range(0xD800, 0xE000),
    *range(0xE0000, 0xE0080),
)


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_SHOWN = {code: _escape(code) for code in (*range(0x20), *UNSEEN)} | {9: "\\t", 10: "\\n", 13: "\\r"}


def shown(text: str) -> str:
    """Return `text` on one line, with what a terminal would act on as escapes."""
    return text if text.isascii() and text.isprintable() else text.translate(_SHOWN)


def is_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str) -> None:
    """Say something to whoever runs the command, beside the data."""
    print(f"note: {shown(text)}", file=sys.stderr)


def warn(text: str) -> None:
    """Say something that must not be missed to whoever runs the command, beside the data."""
    print(f"warning: {shown(text)}", file=sys.stderr)
