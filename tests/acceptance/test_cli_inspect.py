"""`inspect-memory`: records, governed, and why each of them is shown or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_runtime_ref.cli.options import system_user
from tests.acceptance.command import WHO, Command, as_process, fact, file_of, on_terminal, order

KEYS = (
    "memory_id tenant_id memory_class kind content source confidence provenance revision "
    "trust_level status created_at retention"
).split()
SEEDS = ["mem-001", "mem-002", "mem-003"]


def _ids(document: dict[str, Any]) -> list[str]:
    return [record["memory_id"] for record in document["records"]]


@pytest.fixture
def two_tenants(tmp_path: Path) -> Path:
    """A memory.yaml with a record in each of two tenants."""
    records = [fact(memory_id="a-1"), fact(memory_id="b-1", tenant_id="tenant-b", content="Of tenant b.")]
    return file_of(tmp_path / "memory.yaml", {"memory": {"seed_records": records}})


def test_shows_the_seeds_with_what_the_policy_assigned(command: Command) -> None:
    """JSON holds source, count and the records, each with the keys of memory.yaml and what policy set."""
    answer = command("inspect-memory", "--format", "json")

    assert (answer.code, answer.err) == (0, "")
    assert list(answer.document) == ["source", "count", "records"]
    assert (answer.document["count"], _ids(answer.document)) == (3, SEEDS)
    for record in answer.document["records"]:
        assert list(record)[: len(KEYS)] == KEYS
    assert [record["trust_level"] for record in answer.document["records"]] == ["high", "medium", "low"]


def test_is_json_where_nobody_looks(command: Command) -> None:
    """Without a terminal the default is JSON, the same as if it had been asked for."""
    assert _ids(command("inspect-memory").document) == SEEDS


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--memory-class", "profile"], ["mem-001"]),
        (["--kind", "working_note"], ["mem-003"]),
        (["--source", "trusted_service"], ["mem-002"]),
        (["--trust-min", "medium"], ["mem-001", "mem-002"]),
        (["--limit", "1"], ["mem-001"]),
        (["--tenant", "tenant-b"], []),
        (
            ["--tenant-id", "tenant-acme", "--memory-class", "profile", "--memory-class", "long_term"],
            SEEDS[:2],
        ),
    ],
)
def test_narrows(command: Command, options: list[str], expected: list[str]) -> None:
    """Every option narrows what is looked at, and the count is that of what is shown."""
    document = command("inspect-memory", *options).document

    assert (_ids(document), document["count"]) == (expected, len(expected))


def test_config_names_seeds(command: Command, two_tenants: Path) -> None:
    """--config FILE is --store seeds:FILE, and --config-dir DIR the memory.yaml in it."""
    by_store = command("inspect-memory", "--store", f"seeds:{two_tenants}").document
    by_file = command("inspect-memory", "--config", two_tenants).document
    by_folder = command("inspect-memory", "--config-dir", two_tenants.parent).document

    assert {*_ids(by_store)} == {*_ids(by_file)} == {*_ids(by_folder)} == {"a-1", "b-1"}
    assert by_file["source"] == f"seeds:{two_tenants}"


def test_every_format_says_the_same(command: Command) -> None:
    """YAML, JSON and JSON lines hold the same records; a table has a line for each."""
    ids = [
        json.loads(line)["memory_id"]
        for line in command("inspect-memory", "--format", "jsonl").out.splitlines()
    ]
    table = command("inspect-memory", "--format", "table").out.splitlines()

    assert ids == SEEDS
    assert _ids(yaml.safe_load(command("inspect-memory", "--format", "yaml").out)) == SEEDS
    assert [line.split()[0] for line in table] == ["record", *SEEDS]


def test_shows_what_a_principal_would_be_shown(command: Command) -> None:
    """With --as and --purpose only what that purpose may read; the one tenant there is need not be named."""
    document = command("inspect-memory", "--as", "user-42", "--purpose", "personalization").document

    assert _ids(document) == ["mem-001", "mem-002"]


def test_explains_with_the_smallest_change(command: Command) -> None:
    """Each record carries its decision; one kept out also the rules, and a change that lets it in."""
    words = ["inspect-memory", "--as", "user-42", "--purpose", "personalization", "--explain"]
    document = command(*words).document
    decisions = {record["memory_id"]: record["decision"] for record in document["records"]}

    assert decisions["mem-001"] == {"effect": "allow", "reasons": [], "rule_ids": [], "change": None}
    assert decisions["mem-003"] == {
        "effect": "deny",
        "reasons": ["class_not_allowed"],
        "rule_ids": ["MEM-R-201"],
        "change": {"memory_class": "long_term", "trust_level": "medium"},
    }
    sentence = command(*words, "--format", "table").out
    assert "let in if memory_class were `long_term` and trust_level were `medium`" in sentence


def test_the_change_lets_the_record_in(command: Command, tmp_path: Path) -> None:
    """A record made as the counterfactual says is shown to the same principal."""
    changed = fact(memory_id="mem-003", content="Recent runtime demo used create_ticket.")
    seeds = file_of(tmp_path / "memory.yaml", {"memory": {"seed_records": [changed]}})

    shown = command("inspect-memory", "--config", seeds, "--as", "user-42", "--purpose", "personalization")

    assert _ids(shown.document) == ["mem-003"]


@pytest.mark.parametrize("purpose", ["answer_generation", "planning", "personalization", "compliance_review"])
def test_explanation_and_view_agree(command: Command, purpose: str) -> None:
    """What --explain calls allowed is exactly what the principal is shown without it."""
    words = ["inspect-memory", "--as", "user-42", "--purpose", purpose]
    explained = command(*words, "--explain").document

    allowed = [one["memory_id"] for one in explained["records"] if one["decision"]["effect"] == "allow"]
    assert allowed == _ids(command(*words).document)


def test_explains_for_the_systems_user_in_every_tenant(command: Command, two_tenants: Path) -> None:
    """Without --as every record of every tenant is explained, for the user of the system and an answer."""
    document = command("inspect-memory", "--config", two_tenants, "--explain").document

    assert sorted(_ids(document)) == ["a-1", "b-1"]
    assert {record["decision"]["effect"] for record in document["records"]} == {"allow"}
    assert document["explained_for"] == {"principal_id": system_user(), "purpose": "answer_generation"}


def test_looking_across_tenants_is_decided_and_logged(
    command: Command, two_tenants: Path, tmp_path: Path
) -> None:
    """An inspection of all tenants leaves a decision of its own: purpose inspection, role operator."""
    log = tmp_path / "decisions.jsonl"
    command("inspect-memory", "--config", two_tenants, "--log", log)

    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    looked = next(
        line for line in lines if line["type"] == "decision" and line["input"]["operation"] == "inspect"
    )
    assert looked["input"]["query"]["tenant_id"] is None
    assert looked["input"]["query"]["purpose"] == "inspection"
    assert looked["input"]["caller"]["roles"] == ["operator"]
    assert looked["requested_by"] == system_user()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--as", "user-42"], "--as needs --purpose"),
        (["--purpose", "planning"], "--purpose needs --as"),
        (["--role", "operator"], "name it"),
        (["--config", "a.yaml", "--store", "memory:"], "leave --store out"),
        (["--config", "a.yaml", "--config-dir", "."], "not allowed with"),
        (["--limit", "0"], "no whole number from 1"),
        (["--trust-min", "enormous"], "invalid choice"),
    ],
)
def test_mistakes_in_usage_end_in_2(command: Command, options: list[str], said: str) -> None:
    """What cannot be meant is refused in one line, and nothing is printed as data."""
    answer = command("inspect-memory", *options)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_as_needs_a_tenant_where_there_are_two(command: Command, two_tenants: Path) -> None:
    """A principal belongs to one tenant; which one is not guessed."""
    answer = command("inspect-memory", "--config", two_tenants, "--as", "u", "--purpose", "planning")

    assert (answer.code, answer.out) == (2, "")
    assert "--as needs --tenant" in answer.err


def test_a_refusal_ends_in_1_with_its_decision(command: Command) -> None:
    """An unknown purpose is the policy's to refuse: the decision on stdout, the sentence on stderr."""
    answer = command("inspect-memory", "--as", "user-42", "--purpose", "marketing")

    assert answer.code == 1
    assert answer.document["reasons"] == ["purpose_unknown"]
    assert answer.err == "agent-runtime-ref: `list` refused by policy: purpose_unknown (MEM-R-104)\n"


def test_looking_makes_no_store(command: Command, tmp_path: Path) -> None:
    """A file that is not there is an error, and is not there afterwards either."""
    for words in (["inspect-memory"], ["quarantine", "list"], ["trace", "inspect"]):
        answer = command(*words, "--store", f"sqlite:{tmp_path / 'no.db'}")
        assert (answer.code, answer.out) == (2, "")
    assert list(tmp_path.iterdir()) == []


def test_shows_a_sqlite_store_whatever_the_status(command: Command, tmp_path: Path) -> None:
    """An operator also sees what is quarantined."""
    store = f"sqlite:{tmp_path / 'memory.db'}"
    for name, document in (("fact", fact()), ("order", order())):
        command("write", "--candidate", file_of(tmp_path / f"{name}.yaml", document), *WHO, "--store", store)

    records = command("inspect-memory", "--store", store).document["records"]

    assert sorted(record["status"] for record in records) == ["active", "quarantined"]


def test_a_terminal_gets_a_table() -> None:
    """On a terminal the default is a table made with rich."""
    written = on_terminal("inspect-memory")

    assert "mem-001" in written
    assert not written.lstrip().startswith("{")
    assert "3 records in seeds:" in written


def test_no_color_means_no_escapes() -> None:
    """With NO_COLOR a terminal gets no escape sequence."""
    assert "\x1b" not in on_terminal("inspect-memory", "--explain", NO_COLOR="1")


def test_a_narrow_terminal_gets_blocks() -> None:
    """Where a table would not fit, each record is a block, and nothing is cut off."""
    written = on_terminal("inspect-memory", columns=40, NO_COLOR="1").replace("\r\n", "\n")

    assert "record: mem-003" in written
    assert "create_ticket" in written
    assert max(map(len, written.splitlines())) <= 40


def test_content_cannot_act_on_a_terminal(command: Command, tmp_path: Path) -> None:
    """Control characters, direction marks and markup in content come out as text, in every format."""
    content = "[red]loud[/red] \x1b]0;title\x07 \x9b31m \u202egnp.exe\u2066 :smile: 記憶"
    seeds = file_of(tmp_path / "memory.json", {"memory": {"seed_records": [fact(content=content)]}})
    for style in ("table", "json", "jsonl", "yaml"):
        out = command("inspect-memory", "--config", seeds, "--format", style).out
        assert not set(out) & set("\x1b\x07\x9b\u202e\u2066"), style
        assert "記憶" in out
    for style, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        out = command("inspect-memory", "--config", seeds, "--format", style).out
        assert read(out)["records"][0]["content"] == content
    written = on_terminal("inspect-memory", "--config", seeds, columns=250, NO_COLOR="1")
    assert "[red]loud[/red]" in written
    assert ":smile:" in written
    assert "\x1b" not in written


def test_starts_without_what_help_does_not_need() -> None:
    """--help imports no engine, no readers, no rich, no telemetry API."""
    answer = as_process("--help", PYTHONPROFILEIMPORTTIME="1")

    assert answer.code == 0
    for name in (
        "regorus",
        "yaml",
        "rich",
        "jsonschema",
        "jsonschema_rs",
        "opentelemetry",
        "structlog",
        "sqlite3",
    ):
        assert f" {name}\n" not in answer.err, name
    assert "agent_runtime_ref.enforcement" not in answer.err
