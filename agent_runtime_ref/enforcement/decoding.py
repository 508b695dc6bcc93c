"""Encoded segments of a text (base64, base32, hex, binary, character codes, URL, HTML, escapes), decoded.

Only what decodes to readable text counts: a UUID, a digest or an image does not, and stays what it is.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

__all__ = ["CHARACTERS_MAX", "SEGMENTS_MAX", "Decoded", "decoded_segments"]

# Bounds on the work that one text can ask for, whatever is in it.
SEGMENTS_MAX = 512
CHARACTERS_MAX = 65_536

_HINT = re.compile(
    r"[%&\\]|[A-Za-z0-9+/_-]{16}|[0-9a-fA-F]{2}[ :,][0-9a-fA-F]{2}[ :,]|\d{2,3},? \d{2,3},? \d{2}"
)
_TOKEN = re.compile(
    r"(?P<url>(?:%[0-9a-fA-F]{2})+)"
    r"|(?P<html>&(?:\#\d{2,7}|\#[xX][0-9a-fA-F]{2,6}|[a-zA-Z]{2,12});)"
    r"|(?P<escape>(?:\\u\{?[0-9a-fA-F]{4,6}\}?|\\x[0-9a-fA-F]{2})+)"
    r"|(?P<binary>(?<!\w)[01]{8}(?:[ ,]{0,2}[01]{8}){3,}(?!\w))"
    r"|(?P<codes>(?<!\w)\d{2,3}(?:[ ,]{1,2}\d{2,3}){5,}(?!\w))"
    r"|(?P<pairs>(?<!\w)(?:0x)?[0-9a-fA-F]{2}(?:[ :,]{1,2}(?:0x)?[0-9a-fA-F]{2}){5,}(?!\w))"
    r"|(?P<word>[A-Za-z0-9+/_-]{16,}(?:\r?\n[A-Za-z0-9+/_-]{16,}){0,200}={0,6})"
)
_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})+)\Z")
_ESCAPE = re.compile(r"[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the characters start to end of a text decode to."""

    start: int
    end: int
    text: str


def decoded_segments(text: str) -> list[Decoded]:
    """Return the readable segments of `text` in order, at most SEGMENTS_MAX, CHARACTERS_MAX together."""
    found: list[Decoded] = []
    if not _HINT.search(text):
        return found
    left = CHARACTERS_MAX
    for match in _TOKEN.finditer(text):
        plain = _plain(match.lastgroup or "", match[0])
        if plain is None or plain == match[0]:
            continue
        left -= len(plain)
        if left < 0 or len(found) == SEGMENTS_MAX:
            break
        found.append(Decoded(match.start(), match.end(), plain))
    return found


def _plain(kind: str, token: str) -> str | None:
    """Return the text that `token` encodes; None if it encodes none."""
    if kind == "url":
        return _readable(unquote_to_bytes(token))
    if kind == "html":
        import html  # its table of names is large, and few texts have one

        return html.unescape(token)
    if kind == "word":
        return _word(token)
    try:
        if kind == "escape":
            return "".join(chr(int(code, 16)) for code in _ESCAPE.findall(token.replace("\\x", "\\")))
        if kind == "pairs":
            return _readable(bytes(int(pair, 16) for pair in re.split(r"[ :,]+", token)))
        if kind == "binary":
            bits = re.sub(r"[ ,]", "", token)
            return _readable(bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)))
        return _readable(bytes(int(code) for code in re.split(r"[ ,]+", token)))
    except (ValueError, OverflowError):
        return None


def _word(token: str) -> str | None:
    """Return what one unbroken word encodes: hex, base64 in either alphabet, or base32."""
    letters = re.sub(r"\s", "", token)
    as_hex = _HEX.match(letters)
    if as_hex is not None:
        plain = _readable(bytes.fromhex(as_hex[1]))
        if plain is not None:
            return plain
    body = letters.rstrip("=")
    if not any(c.isdigit() or c.isupper() for c in body):
        return None  # A long ordinary word or path: nothing random spells itself in small letters alone.
    try:
        padded = body.translate(str.maketrans("-_", "+/")) + "=" * (-len(body) % 4)
        plain = _readable(base64.b64decode(padded, validate=True))
        if plain is None and body.isupper():
            plain = _readable(base64.b32decode(body + "=" * (-len(body) % 8)))
        return plain
    except (binascii.Error, ValueError):
        return None


def _readable(data: bytes) -> str | None:
    """Return `data` as text, if it is the text of a person or a program rather than noise."""
    if data.count(0) * 2 >= len(data) - 1 and len(data) > 3:
        encoding = "utf-16-le" if data[1:2] == b"\0" else "utf-16-be"
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if all(c.isprintable() or c in "\n\r\t" for c in text) else None
