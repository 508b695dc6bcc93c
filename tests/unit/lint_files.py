"""Small files that lint finds nothing in, and the folder that they are written to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref.linting import Report, lint_paths
from agent_runtime_ref.resources import policies_path

Files = Mapping[str, str | bytes]

SETTINGS = json.loads((policies_path() / "memory" / "settings" / "data.json").read_text("utf-8"))
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "urn:example:schema:note:1.0",
    "type": "object",
    "properties": {
        "text": {
            "$ref": "#/$defs/text",
        },
    },
    "required": ["text"],
    "additionalProperties": False,
    "$defs": {
        "text": {"type": "string", "errorMessage": {"type": "Note field must be a string: {field}"}},
    },
}
REGO = """\
package memory.read

import future.keywords.not
import rego.v1

# METADATA
# title: No other tenant
# description: A query stays in its tenant.
# custom:
#   rule_id: MEM-R-101
#   severity: high
#   scope: query
#   controls: [C-1]
#   attributes: []
#   settings: []
deny contains {"rule_id": "MEM-R-101", "reason": "tenant_mismatch"} if {
	input.query.tenant_id != input.caller.tenant_id
}

decision := {"deny": deny}
"""
REGO_TEST = """\
package memory.read_test

import data.memory.read
import rego.v1

test_other_tenant if {
	asked := {"query": {"tenant_id": "a"}, "caller": {"tenant_id": "b"}}
	some one in read.deny with input as asked
	one.rule_id == "MEM-R-101"
}
"""
CONTROLS = """\
controls:
  - id: C-1
    framework: A framework
    title: A control
    evidence: Rules.
    rules: [MEM-R-101]
"""
SEED = "{tenant_id: t, memory_class: short_term, kind: working_note, content: C, source: session_state}"
RECORD = """\
kind: memory_record
record_id: mem-1
tenant_id: tenant-acme
memory_class: profile
value: English
source: user_confirmed_preference
provenance: user_confirmed_preference
revision: 1
trust_level: high
"""


def bundle(**changed: str | bytes) -> dict[str, str | bytes]:
    """Return the files of a bundle of one rule, some of them changed."""
    files: dict[str, str | bytes] = {
        "manifest": '{"revision": "1", "roots": ["memory"]}',
        "settings": json.dumps(SETTINGS),
        "rego": REGO,
        "test": REGO_TEST,
        "controls": CONTROLS,
    }
    names = {
        "manifest": "policies/.manifest",
        "settings": "policies/memory/settings/data.json",
        "detectors": "policies/memory/detectors/data.json",
        "rego": "policies/memory/read/read.rego",
        "test": "policies/memory/read/read_test.rego",
        "controls": "policies/compliance/controls.yaml",
    }
    return {names[name]: content for name, content in (files | changed).items()}


def schema(**changes: Any) -> dict[str, str | bytes]:
    """Return the file of a schema, some of its keywords changed; None takes one away."""
    document = {key: value for key, value in (SCHEMA | changes).items() if value is not None}
    return {"schemas/note.schema.json": json.dumps(document, indent=1)}


def example(direction: str, name: str, content: str) -> dict[str, str | bytes]:
    """Return the schema and one example of it."""
    return schema() | {f"schemas/examples/note/{direction}/{name}": content}


def seeds(*records: str) -> dict[str, str | bytes]:
    """Return a memory.yaml with these records."""
    return {"memory.yaml": "memory:\n  seed_records:\n" + "".join(f"    - {one}\n" for one in records)}


def lint_files(folder: Path, files: Files) -> Report:
    """Return the report on `files`, written to a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return lint_paths([folder])
