"""Text that came from outside, made harmless for a terminal.

Memory content is somebody's words. Printed as it is, it could move the cursor, rename the window or turn
the reading direction; so whatever a terminal acts on, or an eye cannot see, is shown as an escape.
"""

from __future__ import annotations

import re
import sys

# C1 and DEL, direction marks and overrides, invisible joiners and tags, line separators, lone surrogates.
UNSEEN = (
    "\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_HARMFUL = re.compile(f"[\x00-\x1f{UNSEEN}]")
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def shown(text: str) -> str:
    """Return `text` on one line, with what a terminal would act on as escapes."""
    return _HARMFUL.sub(_escape, text)


def is_terminal() -> bool:
    """Tell whether a person reads standard output."""
    return sys.stdout is not None and sys.stdout.isatty()


def note(text: str) -> None:
    """Say something to whoever runs the command, beside the data."""
    print(f"note: {shown(text)}", file=sys.stderr)


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
