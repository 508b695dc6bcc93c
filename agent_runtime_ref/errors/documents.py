"""Documents that do not follow their schema, or cannot be read."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class DocumentError(GovernanceError):
    """A document does not follow its schema; the base of the two errors that say how."""

    code = "document.invalid"
    message = "{sentence}"

    def __init__(
        self,
        sentence: str,
        *,
        path: str = "$",
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(sentence=sentence, path=path, line=line, column=column, source=source)
        self.sentence = sentence
        self.path = path
        self.line = line
        self.column = column
        self.source = source

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known; what a command prints before the sentence."""
        parts = [part for part in (self.source, self.line, self.column) if part is not None]
        return ":".join(str(part) for part in parts)

    def __str__(self) -> str:
        """Return exactly the documented sentence."""
        return self.sentence


class DocumentTypeError(DocumentError, TypeError):
    """A part of a document is of the wrong type, or a mapping or list is missing."""

    code = "document.type"


class DocumentValueError(DocumentError, ValueError):
    """A part of a document has the right type and a value that is not permitted."""

    code = "document.value"


class DocumentUnreadableError(DocumentValueError):
    """A file is not readable as a document: broken, ambiguous or larger than permitted."""

    code = "document.unreadable"

    def __init__(
        self,
        sentence: str,
        *,
        reason: str | None = None,
        path: str = "$",
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(sentence, path=path, line=line, column=column, source=source)
        self.reason = reason if reason is not None else sentence
        self.values["reason"] = self.reason


class SchemaNotFoundError(GovernanceError):
    """No schema of that name is in the schema directory."""

    code = "schema.not_found"
    message = "no schema named `{name}` in {directory}; try `agent-runtime-ref lint`"

    def __init__(self, name: str, directory: object) -> None:
        super().__init__(name=name, directory=str(directory))


class ResourceNotFoundError(GovernanceError):
    """Policies, schemas or configs are not where they were said to be, nor in the package."""

    code = "resource.not_found"
    message = "no {kind} at {looked}; name an existing path or leave it out to use the bundled one"

    def __init__(self, kind: str, looked: object) -> None:
        super().__init__(kind=kind, looked=str(looked))
