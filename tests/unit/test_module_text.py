"""The parts of a module: what decides stands in them, and nothing else."""

from __future__ import annotations

import pytest

from agent_runtime_ref.replay.module_text import parts_of

HEAD = "package memory.read\n\nimport data.memory.settings\nimport rego.v1\n"
BLOCK = "# METADATA\n# custom:\n#   rule_id: R-1\n"


def _text(*lines: str) -> str:
    return "\n".join((HEAD, *lines, ""))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("helper := `\n# one\n`", "helper := `\n# two\n`"),
        ("helper := `a\n\nb`", "helper := `a\nb`"),
        ("helper := `a\nb`", "helper := `a␤nb`"),
        ('helper := "a\u2028# b"', 'helper := "a\u2028# c"'),
        ('helper := "a # b"', 'helper := "a # c"'),
        ('helper := $"{f("#")}" # 1', 'helper := $"{f("#")}" # 2'),
    ],
    ids=["raw-comment", "raw-blank", "raw-mark", "line-separator", "string", "template"],
)
def test_nothing_in_a_string_is_lost(one: str, other: str) -> None:
    """What looks like a comment or an empty line within a string is a part of the string."""
    assert parts_of(_text(one)) != parts_of(_text(other))


@pytest.mark.parametrize(
    "other",
    ["a if {\n\t# why\n\tb\n}", "a if {\n\tb # why\n}\n\n# more", "a if {\r\n\tb\r\n}\r\n"],
    ids=["indented", "trailing", "line-ends"],
)
def test_comments_and_blanks_are_no_code(other: str) -> None:
    """Wherever a comment stands, it decides nothing."""
    assert parts_of(_text(other)) == parts_of(_text("a if {\n\tb\n}"))


def test_an_import_stands_with_what_uses_it() -> None:
    """A rule says which imports it means; one that nobody uses says nothing."""
    (head, rule) = parts_of(_text(BLOCK + "limit := settings.limit"))

    assert head.lines == ()
    assert rule.lines == ("import data.memory.settings", "import rego.v1", "limit := settings.limit")
    (_, other) = parts_of(_text(BLOCK + "limit := 5"))
    assert other.lines == ("import rego.v1", "limit := 5")


def test_a_block_within_a_string_is_none() -> None:
    """METADATA in a raw string parts nothing."""
    (only,) = parts_of(_text(f"helper := `\n{BLOCK}`"))

    assert only.line == 0
