"""Every rule of lint: what it demands, how severe it is, what to do (docs/reference/lint-rules.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ERROR", "GROUPS", "RULES", "WARNING", "Rule"]

ERROR = "error"
WARNING = "warning"

# Letter of a rule id -> what the rules of that letter look at.
GROUPS: Mapping[str, str] = {
    "F": "files of any kind",
    "S": "schemas (`*.schema.json`)",
    "X": "examples (`examples/SCHEMA/valid` and `invalid`, beside the schemas)",
    "D": "documents",
    "C": "memory.yaml and runtime.yaml",
    "P": "policies (a bundle of Rego modules and data)",
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; its id never changes and is never used again."""

    rule_id: str
    severity: str
    title: str
    remedy: str

    @property
    def group(self) -> str:
        """The letter of the id."""
        return self.rule_id.split("-")[1]


_TABLE = (
    Rule(
        "LINT-F-001",
        ERROR,
        "A file can be read and means one thing only",
        "mend the file at the place named: UTF-8 without a byte-order mark, one document, "
        "no key twice, no alias, merge key or tag",
    ),
    Rule(
        "LINT-S-001",
        ERROR,
        "A schema follows its metaschema",
        "write the keyword as draft 2020-12 of JSON Schema defines it",
    ),
    Rule(
        "LINT-S-002",
        ERROR,
        "A schema declares draft 2020-12",
        "set `$schema` to https://json-schema.org/draft/2020-12/schema",
    ),
    Rule(
        "LINT-S-003",
        ERROR,
        "A schema has an `$id`",
        "give the schema an `$id` that ends with its version, such as urn:example:schema:note:1.0",
    ),
    Rule(
        "LINT-S-004",
        ERROR,
        "No two schemas share an `$id`",
        "give one of the two schemas an `$id` of its own",
    ),
    Rule(
        "LINT-S-005",
        WARNING,
        "An `$id` ends with a version",
        "end the `$id` with a version, such as :1.0, so that a document can say which one it follows",
    ),
    Rule(
        "LINT-S-006",
        ERROR,
        "Each `$ref` leads to a part of the same file",
        "point the `$ref` at an entry of the file's own `$defs`; nothing is fetched",
    ),
    Rule(
        "LINT-S-007",
        ERROR,
        "An `errorMessage` names only what a refusal can fill in",
        "use {schema}, {path}, {field}, {idx}, {value} or the name of the field in braces; "
        "double a brace that is text",
    ),
    Rule(
        "LINT-S-008",
        ERROR,
        "A schema can be compiled",
        "mend the part that the validator cannot use, mostly a pattern or a reference to itself",
    ),
    Rule(
        "LINT-S-009",
        ERROR,
        "Where a part has a documented sentence, each of its constraints has one",
        "add the missing keyword to the `errorMessage` of the part",
    ),
    Rule(
        "LINT-S-010",
        WARNING,
        "An `errorMessage` speaks of constraints that are there",
        "remove the sentence, or add the constraint that it explains",
    ),
    Rule(
        "LINT-X-001", ERROR, "A valid example follows its schema", "mend the example, or move it to `invalid`"
    ),
    Rule(
        "LINT-X-002",
        ERROR,
        "An invalid example is refused by its schema",
        "make the example wrong in one way, or move it to `valid`",
    ),
    Rule(
        "LINT-X-003",
        ERROR,
        "An invalid example is refused with the sentence that it names",
        "correct the expected sentence, or the schema's `errorMessage`",
    ),
    Rule(
        "LINT-X-004",
        WARNING,
        "An invalid example names the sentence by which it is refused",
        "begin the file with `# expect: ` and the sentence; for JSON, write it into a file "
        "of the same name with the ending .expect",
    ),
    Rule(
        "LINT-X-005",
        WARNING,
        "A schema has examples in both directions",
        "add at least one file to `valid` and one to `invalid`",
    ),
    Rule(
        "LINT-X-006",
        ERROR,
        "A folder of examples belongs to a schema",
        "name the folder as the schema is named, without .schema.json",
    ),
    Rule(
        "LINT-D-001", ERROR, "A document follows the schema of its kind", "mend the field that the path names"
    ),
    Rule(
        "LINT-D-002",
        ERROR,
        "A document's `kind` is spelt as a schema spells it",
        "write one of memory_record, retrieval_query, retrieval_result",
    ),
    Rule(
        "LINT-D-003",
        WARNING,
        "A file is of a kind that lint knows",
        "leave the file out, or give the document its `kind`",
    ),
    Rule(
        "LINT-D-004",
        WARNING,
        "The bundled policies do not refuse a query whole",
        "ask for a purpose that there is, for classes that it may read, and for no more than the limit; "
        "policies of your own may differ",
    ),
    Rule(
        "LINT-C-001",
        ERROR,
        "memory.yaml follows its schema",
        "mend the field of the seed record that the sentence names",
    ),
    Rule(
        "LINT-C-002",
        ERROR,
        "The write policy admits each seed record",
        "mend the record, or the policy; a store with a refused seed does not open",
    ),
    Rule(
        "LINT-C-003",
        WARNING,
        "The write policy quarantines no seed record",
        "reword the record; nobody reads it until it is released",
    ),
    Rule(
        "LINT-C-004",
        WARNING,
        "Seed records can be tried against the policies",
        "mend the policies in force first; the seeds were not tried",
    ),
    Rule("LINT-C-011", ERROR, "runtime.yaml follows its schema", "mend the setting that the path names"),
    Rule(
        "LINT-C-012",
        ERROR,
        "The policies that runtime.yaml names are there",
        "name an existing folder or archive, relative to the folder of the file",
    ),
    Rule(
        "LINT-C-013",
        ERROR,
        "The policies have the digest and the signature that runtime.yaml demands, and can be loaded",
        "pin the digest of the bundle that was reviewed, sign it with the key that is named, or restore it",
    ),
    Rule(
        "LINT-C-014",
        ERROR,
        "The store that runtime.yaml names is of a known kind",
        "name memory:, seeds:[PATH], jsonl:PATH, file:PATH, sqlite:PATH, postgresql://USER@HOST/DATABASE or"
        " redis://USER@HOST/NUMBER",
    ),
    Rule(
        "LINT-P-000",
        ERROR,
        "A bundle can be loaded",
        "mend what the message names; until then every decision is a refusal",
    ),
    Rule("LINT-P-001", ERROR, "A module parses", "mend the Rego at the place named"),
    Rule(
        "LINT-P-002",
        ERROR,
        "A module imports what makes engines agree",
        "import rego.v1 and future.keywords.not",
    ),
    Rule(
        "LINT-P-003",
        ERROR,
        "A module keeps to the portable subset",
        "write it as the message says, so that every engine gives the same answer",
    ),
    Rule(
        "LINT-P-004",
        WARNING,
        "`lower` and `upper` say why they are safe",
        "compare as written, or say above the line, after `# portable:`, why only ASCII gets there",
    ),
    Rule(
        "LINT-P-005",
        ERROR,
        "A rule has METADATA: title, description, severity, scope, controls",
        "complete the METADATA comment above the rule",
    ),
    Rule("LINT-P-006", ERROR, "A rule id is described once", "give one of the two rules an id of its own"),
    Rule(
        "LINT-P-007",
        ERROR,
        "A described rule answers with its id",
        "write the id of the METADATA into the head of the rule",
    ),
    Rule(
        "LINT-P-008",
        ERROR,
        "METADATA and compliance/controls.yaml say the same",
        "name the control in the METADATA of the rule and the rule under the control",
    ),
    Rule(
        "LINT-P-009",
        ERROR,
        "Each rule and each package has tests",
        "name the rule's id in a test in PACKAGE_test, beside the rule",
    ),
    Rule("LINT-P-010", ERROR, "A test over cases has its cases", "define the object that the test runs over"),
    Rule(
        "LINT-P-011",
        ERROR,
        "What excludes a record is in the plan",
        "add a clause with the same id, or declare the plan incomplete for it",
    ),
    Rule(
        "LINT-P-012",
        ERROR,
        "The tests of a bundle can be read, and add nothing to its rules",
        "mend the file that the message names; until then `policy test` runs none of the tests",
    ),
    Rule(
        "LINT-P-101",
        ERROR,
        "Settings follow their schema",
        "mend the setting that the path names, in memory/settings/data.json",
    ),
    Rule(
        "LINT-P-102",
        ERROR,
        "Settings refer to names that they define",
        "define the name, or correct where it is used",
    ),
    Rule(
        "LINT-P-103",
        ERROR,
        "Each memory class has a finite retention",
        "give the class `retention` with a value and with ttl_days from 1 to 36500",
    ),
    Rule(
        "LINT-P-104",
        ERROR,
        "Detectors can be compiled",
        "mend the pattern that the message names, in memory/detectors/data.json",
    ),
)

RULES: Mapping[str, Rule] = {rule.rule_id: rule for rule in _TABLE}
