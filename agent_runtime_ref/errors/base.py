"""The base of every error that the package raises on purpose."""

from __future__ import annotations

from typing import ClassVar


class GovernanceError(Exception):
    """Something was refused or could not be done; the base of every error of this package."""

    code: ClassVar[str] = "governance.error"
    message: ClassVar[str] = "{reason}"

    def __init__(self, **values: object) -> None:
        # The values are kept as the only argument: that is what makes the error picklable.
        super().__init__(values)
        self.values = values
        for name, value in values.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        """Return the message with the user's own values filled in."""
        return self.message.format_map(self.values)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by keyword, since subclasses take nothing by position."""
        return (_rebuild, (type(self), self.values))


def _rebuild(cls: type[GovernanceError], values: dict[str, object]) -> GovernanceError:
    """Return an error of `cls` as it was before it was pickled."""
    return cls(**values)
