"""Examples beside the schemas: valid ones are accepted, invalid ones refused, with the sentence they name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.linting.documents import telling
from agent_runtime_ref.linting.findings import Finding, finding
from agent_runtime_ref.linting.schemas import compiled_schema
from agent_runtime_ref.linting.targets import EXPECTATION, SCHEMA_SUFFIX, Target
from agent_runtime_ref.validation.findings import Finding as Refusal
from agent_runtime_ref.validation.schemas import CompiledSchema
from agent_runtime_ref.validation.sentences import unreadable_sentence
from agent_runtime_ref.yaml_source import read_file

__all__ = ["Examples", "lint_directions", "lint_stray"]

_MARK = "# expect: "


class Examples:
    """Checks examples; each schema is compiled once."""

    def __init__(self) -> None:
        self._schemas: dict[str, CompiledSchema | None] = {}

    def lint(self, target: Target) -> Iterator[Finding]:
        """Yield what is wrong with one example."""
        assert target.schema is not None
        if target.schema not in self._schemas:
            self._schemas[target.schema] = compiled_schema(Path(target.schema))
        schema = self._schemas[target.schema]
        if schema is None:
            return  # reported where the schema stands
        refusals = _refusals(schema, target.path)
        if target.path.parent.name == "valid":
            for one in telling(refusals):
                yield finding("LINT-X-001", target.path, one.sentence, (one.line, one.column))
        else:
            yield from _invalid(schema, target.path, refusals)


def lint_directions(schema: Path) -> Iterator[Finding]:
    """Yield a finding for each direction in which a schema that has examples has none."""
    name = schema.name.removesuffix(SCHEMA_SUFFIX)
    folder = schema.parent / "examples" / name
    if not folder.is_dir():
        return
    for direction in ("valid", "invalid"):
        if not any(path.suffix != EXPECTATION for path in (folder / direction).glob("*.*")):
            yield finding("LINT-X-005", schema, f"`{name}` has examples, but no {direction} ones")


def lint_stray(folder: Path) -> Iterator[Finding]:
    """Yield the finding for a folder of examples that belongs to no schema."""
    message = f"no schema `{folder.name}{SCHEMA_SUFFIX}` for the examples in this folder"
    yield finding("LINT-X-006", folder, message)


def _refusals(schema: CompiledSchema, path: Path) -> tuple[Refusal, ...]:
    """Return every way in which a schema refuses an example; empty where it is accepted."""
    from agent_runtime_ref.linting.configs import stripped
    from agent_runtime_ref.validation.explain import explain

    try:
        document = read_file(path, instant_fields=schema.instant_fields)
    except DocumentUnreadableError as error:
        sentence = unreadable_sentence(schema, error.reason)
        return (Refusal(sentence, "readable", "$", False, error.line, error.column),)
    value = stripped(document.value) if schema.name == "memory_store_config" else document.value
    if schema.accepts(value):
        return ()
    found = explain(schema, value, fields={}, positions=document.positions, source=None)
    return found or (Refusal("is not valid", "schema", "$", False),)


def _invalid(schema: CompiledSchema, path: Path, refusals: tuple[Refusal, ...]) -> Iterator[Finding]:
    if not refusals:
        yield finding("LINT-X-002", path, f"`{schema.name}` accepts this example, which is to be invalid")
        return
    expected = _expected(path)
    first = refusals[0]
    if expected is None:
        yield finding("LINT-X-004", path, f"no expected sentence; it is refused with `{first.sentence}`")
    elif expected != first.sentence:
        message = f"refused with `{first.sentence}`, expected was `{expected}`"
        yield finding("LINT-X-003", path, message, (first.line, first.column))


def _expected(path: Path) -> str | None:
    """Return the sentence that an invalid example names, in its first line or in a file beside it."""
    try:
        if path.suffix.lower() == ".json":
            return path.with_suffix(EXPECTATION).read_text(encoding="utf-8").strip()
        first = path.read_bytes().partition(b"\n")[0].decode("utf-8", "replace")
    except (OSError, UnicodeDecodeError):
        return None
    return first.removeprefix(_MARK).strip() if first.startswith(_MARK) else None
