"""Arguments of public calls, checked at the door: what is of the wrong type is refused by its name.

A string is a sequence of strings too, and any flag that is none is true: neither may pass for what it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from agent_runtime_ref.contracts.caller import require_text
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError

__all__ = [
    "each_of",
    "require",
    "require_callable",
    "require_flag",
    "require_instant",
    "require_integer",
    "require_parts",
    "require_string",
    "require_strings",
]

T = TypeVar("T")
_INTEGER_MAX = 2**53 - 1
_EARLIEST_US, _LATEST_US = -62_135_596_800_000_000, 253_402_300_799_999_999


def require(name: str, value: object, *kinds: type, wanted: str = "") -> None:
    """Refuse a value that is of none of the types.

    Raises:
        DocumentTypeError: it is not.
    """
    if not isinstance(value, kinds):
        said = wanted or "a " + " or ".join(one.__name__ for one in kinds)
        raise DocumentTypeError(f"{name}: must be {said}", path=name)


def require_callable(name: str, value: Callable[..., Any]) -> None:
    """Refuse what cannot be called."""
    if not callable(value):
        raise DocumentTypeError(f"{name}: must be callable", path=name)


def require_parts(name: str, value: object, *parts: str) -> None:
    """Refuse what does not follow a protocol: an object without one of its methods or properties."""
    missing = [one for one in parts if not hasattr(value, one)]
    if missing:
        raise DocumentTypeError(f"{name}: must be an object with `{missing[0]}`", path=name)


def require_flag(name: str, value: bool) -> None:
    """Refuse what is neither True nor False: `"no"` would be true."""
    require(name, value, bool, wanted="true or false")


def require_integer(name: str, value: int) -> None:
    """Refuse what is no integer, or none that every JSON reader takes as it is.

    Raises:
        DocumentTypeError: it is no integer; true is none.
        DocumentValueError: it is larger than 2**53 - 1 either way.
    """
    require(name, value if type(value) is not bool else None, int, wanted="an integer")
    if not -_INTEGER_MAX <= value <= _INTEGER_MAX:
        raise DocumentValueError(f"{name}: must be from {-_INTEGER_MAX} to {_INTEGER_MAX}", path=name)


def require_instant(name: str, value: int) -> None:
    """Refuse what is no instant in microseconds between the years 1 and 9999."""
    require(name, value if type(value) is not bool else None, int, wanted="an integer, in microseconds")
    if not _EARLIEST_US <= value <= _LATEST_US:
        raise DocumentValueError(f"{name}: must be an instant in microseconds since 1970", path=name)


def require_string(name: str, value: str | None, *, optional: bool = False) -> None:
    """Refuse what is no text, or has no UTF-8 form.

    Raises:
        DocumentTypeError: it is no string.
        DocumentValueError: it is no text.
    """
    if value is None and optional:
        return
    require(name, value, str, wanted="a string")
    require_text(name, value)


def require_strings(name: str, values: Iterable[str]) -> tuple[str, ...]:
    """Return strings as a tuple; a bare string is refused, which would be taken letter by letter.

    Raises:
        DocumentTypeError: it is no list of strings.
        DocumentValueError: one of them is no text.
    """
    found = tuple(each_of(name, values, str, wanted="strings"))
    for one in found:
        require_text(name, one)
    return found


def each_of(name: str, values: Iterable[T], kind: type[T], *, wanted: str = "") -> Iterator[T]:
    """Return what there is of `values`, each checked when its turn comes.

    Raises:
        DocumentTypeError: there are no values to go through, or, on the way, one is not of that type.
    """
    said = f"{name}: must be a list of {wanted or kind.__name__}"
    if isinstance(values, str | bytes | bytearray | dict) or not isinstance(values, Iterable):
        raise DocumentTypeError(said, path=name)
    return _checked(name, values, kind, said)


def _checked(name: str, values: Iterable[T], kind: type[T], said: str) -> Iterator[T]:
    for one in values:
        if not isinstance(one, kind):
            raise DocumentTypeError(said, path=name)
        yield one
