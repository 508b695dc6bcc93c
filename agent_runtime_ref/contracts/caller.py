"""Who asks: identity out of a trusted context, never out of memory content or a model's argument."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError

__all__ = ["Caller", "require_text"]

_REQUIRED = ("tenant_id", "principal_id")
_OPTIONAL = ("session_id", "trace_id", "subject", "agent_id")


@dataclass(frozen=True, slots=True)
class Caller:
    """The identity on whose behalf a gate acts; ids are compared byte for byte.

    An empty id is no error here: the policy refuses it, and the refusal is on record.
    """

    tenant_id: str
    principal_id: str
    session_id: str | None = None
    trace_id: str | None = None
    subject: str | None = None
    roles: Collection[str] = ()  # kept as a sorted tuple without repetition
    agent_id: str | None = None

    def __post_init__(self) -> None:
        for name in _REQUIRED:
            if not isinstance(getattr(self, name), str):
                raise DocumentTypeError(f"caller $.{name}: must be a string", path=f"$.{name}")
            require_text(f"caller $.{name}", getattr(self, name))
        for name in _OPTIONAL:
            if not isinstance(getattr(self, name), str | None):
                raise DocumentTypeError(f"caller $.{name}: must be a string", path=f"$.{name}")
            require_text(f"caller $.{name}", getattr(self, name))
        # A string is a collection of strings too: `roles="operator"` must not become eight roles.
        if not isinstance(self.roles, tuple | list | set | frozenset) or not _all_strings(self.roles):
            raise DocumentTypeError("caller $.roles: must be a list of strings", path="$.roles")
        for role in self.roles:
            require_text("caller $.roles", role)
        object.__setattr__(self, "roles", tuple(sorted(set(self.roles))))

    @property
    def own_subject(self) -> str:
        """The user whose records this caller may see: the subject acted for, else the principal."""
        return self.principal_id if self.subject is None else self.subject


def require_text(place: str, value: str | None) -> None:
    """Refuse a string that is no text: half of a surrogate pair cannot be stored or sent anywhere.

    Raises:
        DocumentValueError: `value` has no UTF-8 form.
    """
    if value is not None and not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DocumentValueError(f"{place}: must be text that has a UTF-8 form") from error


def _all_strings(names: Collection[object]) -> bool:
    """Say whether every name is a string."""
    return all(isinstance(name, str) for name in names)
