"""Documents: which schema a file follows, and every way in which it does not.

A file that was found in a folder is told like one that was named. What is nobody's of ours is read by a fast
parser only: it is a warning, that it was not checked, and an error where it is no YAML or JSON at all.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.linting.findings import Finding, finding
from agent_runtime_ref.linting.targets import Target
from agent_runtime_ref.yaml_source import SourceDocument

__all__ = [
    "NOT_CHECKED",
    "is_ours",
    "is_wellformed",
    "lint_document",
    "schema_findings",
    "telling",
    "unreadable",
]

NOT_CHECKED = "LINT-D-003"
# File name without its ending -> schema.
_BY_NAME = {"memory": "memory_store_config", "runtime": "runtime_config"}
# A mapping with all of these fields is a document of that schema.
_BY_FIELDS = (
    ("decision", frozenset({"decision_id", "effect", "policy_digest"})),
    ("event", frozenset({"event_type", "trace_id", "payload"})),
    ("memory_candidate", frozenset({"tenant_id", "memory_class", "content"})),
    ("memory_candidate", frozenset({"tenant_id", "content", "source"})),
)
# Among our configs there are some that another program reads, and that can tell what is wrong with them.
_OF_OTHERS = frozenset({"grafana-dashboard", "otel-collector"})
# What a file that is ours has in it. Others are only looked at: reading YAML with places is slow.
_OURS = re.compile(
    rb"""\bkind["']?\s*:\s*["']?(memory|retrieval)_|\bseed_records\b|\bevent_type\b|\bdecision_id\b|\bmemory_class\b|\btenant_id\b"""
)
_LOOKED_AT_BYTES = 256 * 1024
_CLOSE_ENOUGH = 0.8


def lint_document(target: Target) -> Iterator[Finding]:
    """Yield what is wrong with a document, or that it was not checked."""
    path = target.path
    if path.stem in _OF_OTHERS and is_wellformed(path):
        return
    if not (target.named or is_ours(path)) and is_wellformed(path):
        yield finding(NOT_CHECKED, path, "not checked: nothing in it says that it is one of ours")
        return
    schema = target.schema or _BY_NAME.get(path.stem)
    try:
        document = validation.read_document(path, schema=schema)
    except DocumentUnreadableError as error:
        yield unreadable(path, error)
        return
    schema = schema or _schema_of(document.value)
    if schema is None:
        yield from _unknown(target, document)
    elif schema in _BY_NAME.values():
        from agent_runtime_ref.linting.configs import lint_config

        yield from lint_config(path, document, schema)
    else:
        found = list(schema_findings("LINT-D-001", path, document, schema))
        yield from found
        if schema == "retrieval_query" and not found:
            yield from _refused(path, document)


def is_wellformed(path: Path) -> bool:
    """Say whether a file is YAML or JSON of any kind, such as others mean it: documents, tags and aliases."""
    import yaml

    try:
        raw = path.read_bytes()
        if path.suffix.lower() == ".json":
            json.loads(raw)
        else:
            for _ in yaml.parse(raw, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                pass
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return False
    return True


def is_ours(path: Path) -> bool:
    """Say whether a file that was found in a folder is one of ours, by its name, place or words."""
    if path.stem in _BY_NAME or path.parent.name == "configs":
        return True
    try:
        with path.open("rb") as file:
            return _OURS.search(file.read(_LOOKED_AT_BYTES)) is not None
    except OSError:
        return False  # nothing says that it is


def schema_findings(
    rule_id: str, path: Path, document: SourceDocument, schema: str, *, value: object = None
) -> Iterator[Finding]:
    """Yield a finding for each error of a document; `value` is the document where it was prepared."""
    checked = document.value if value is None else value
    for found in telling(validation.findings(schema, checked, positions=document.positions)):
        yield finding(rule_id, path, found.sentence, (found.line, found.column))


def telling(found: Iterable[validation.Finding]) -> Iterator[validation.Finding]:
    """Yield the errors that tell something: of a value of the wrong type, only that."""
    found = tuple(found)
    mistyped = {one.path for one in found if one.wrong_type}
    return (one for one in found if one.wrong_type or one.path not in mistyped)


def unreadable(path: Path, error: DocumentUnreadableError) -> Finding:
    """Return the finding for a file that cannot be read, or does not mean one thing only."""
    return finding("LINT-F-001", path, str(error), (error.line, error.column))


def _schema_of(value: object) -> str | None:
    """Return the schema of a document by what is in it; None where it is of no kind that is known."""
    if not isinstance(value, Mapping):
        return None
    kind = value.get("kind")
    if isinstance(kind, str) and kind in validation.DOCUMENT_KINDS:
        return kind
    memory = value.get("memory")
    if isinstance(memory, Mapping) and "seed_records" in memory:
        return "memory_store_config"
    if _is_runtime(value):
        return "runtime_config"
    return next((name for name, fields in _BY_FIELDS if fields <= value.keys()), None)


def _is_runtime(value: Mapping[Any, Any]) -> bool:
    """Say whether a mapping is a runtime.yaml under another name: all of its keys, or nearly."""
    known = validation.schema_document("runtime_config")["properties"].keys()
    others = [str(key) for key in value if key not in known]
    return len(others) < len(value) and all(
        difflib.get_close_matches(key, known, 1, _CLOSE_ENOUGH) for key in others
    )


def _refused(path: Path, document: SourceDocument) -> Iterator[Finding]:
    """Yield a warning for a query that the bundled policy refuses whole to whom it names."""
    from agent_runtime_ref.contracts import Caller, RetrievalQuery
    from agent_runtime_ref.errors import GovernanceError, PolicyDeniedError
    from agent_runtime_ref.runtime import GovernedMemory

    try:
        query = RetrievalQuery.from_document(document.value)
        caller = Caller(query.tenant_id, query.principal_id, subject=query.subject)
        with GovernedMemory.open("memory:") as memory:
            memory.read(query, caller=caller)
    except PolicyDeniedError as refused:
        yield finding("LINT-D-004", path, str(refused), document.positions.place(("purpose",)))
    except GovernanceError:
        return  # what is wrong with the policies is told where they are linted


def _unknown(target: Target, document: SourceDocument) -> Iterator[Finding]:
    """Yield what can be said of a document of no known kind: it is misspelt, or was not checked."""
    value: Any = document.value
    kind = value.get("kind") if isinstance(value, Mapping) else None
    near = difflib.get_close_matches(str(kind), validation.DOCUMENT_KINDS, 1, _CLOSE_ENOUGH)
    place = document.positions.place(("kind",))
    if near:
        yield finding(
            "LINT-D-002", target.path, f"`{kind}` is no kind of document; `{near[0]}` was meant?", place
        )
    else:
        known = ", ".join(f"`{name}`" for name in validation.DOCUMENT_KINDS)
        yield finding(NOT_CHECKED, target.path, f"not checked: `kind` is none of {known}", place)
