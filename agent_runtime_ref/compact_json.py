"""JSON on the hot path, as policies and log lines take it: no blanks, keys in the order given, UTF-8.

One writer for all of them, so that a document has the same bytes wherever it is written. Documents of users
are read elsewhere: `yaml_source` also says where in a file something is wrong.
"""

from __future__ import annotations

from typing import Any

import orjson

__all__ = ["compact", "parsed"]


def compact(document: object) -> str:
    """Return the JSON text of a document of dicts, lists, tuples, strings, integers, booleans and None.

    Raises:
        TypeError: a part is of another kind, an integer needs more than 64 bits, or a string is no Unicode
            text (lone surrogates).
    """
    return orjson.dumps(document).decode()


def parsed(text: str | bytes) -> Any:
    """Return the value of a JSON text that an engine answered with; of a key that stands twice, the last.

    Raises:
        ValueError: it is no JSON; NaN and infinity are none.
    """
    return orjson.loads(text)
