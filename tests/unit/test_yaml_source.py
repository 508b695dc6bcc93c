"""A file says one thing and says it openly, or it is refused with line and column."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.yaml_source import Surprise, read_file, read_json, read_yaml

YAML_LIES = {
    "duplicate key": (b"a: 1\nb: 2\na: 3\n", "duplicate key `a`", 3, 1),
    "duplicate key, quoted": (b"a: 1\n'a': 3\n", "duplicate key `a`", 2, 1),
    "nested duplicate key": (b"a:\n  - {b: 1, b: 2}\n", "duplicate key `b`", 2, 12),
    "alias": (b"a: &x 1\nb: *x\n", "alias `*x`; write it out", 2, 4),
    "alias bomb": (
        b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
        "alias `*a`; write it out",
        2,
        8,
    ),
    "alias to itself": (b"a: &a [*a]\n", "alias `*a`; write it out", 1, 8),
    "merge key": (b"a: 1\n<<: {b: 2}\n", "merge key `<<`; write the fields out", 2, 1),
    "custom tag": (b"a: !custom x\n", "tag `!custom` is not permitted", 1, 4),
    "python tag": (
        b"a: !!python/object/apply:os.system [x]\n",
        "tag `tag:yaml.org,2002:python/object/apply:os.system` is not permitted",
        1,
        4,
    ),
    "binary tag": (b"a: !!binary aGk=\n", "tag `tag:yaml.org,2002:binary` is not permitted", 1, 4),
    "set tag": (b"a: !!set {x}\n", "tag `tag:yaml.org,2002:set` is not permitted", 1, 4),
    "two documents": (b"a: 1\n---\nb: 2\n", "a second document begins here", 2, 1),
    "tab": (b"a:\n\tb: 1\n", "tab where YAML wants spaces", 2, 1),
    "utf-8 mark": (b"\xef\xbb\xbfa: 1\n", "byte-order mark; save as UTF-8 without one", 1, 1),
    "utf-16 mark": ("a: 1\n".encode("utf-16"), "byte-order mark; save as UTF-8 without one", 1, 1),
    "invalid utf-8": ("é: 1\nb: ".encode() + b"\xff\n", "invalid UTF-8", 2, 4),
    "encoded surrogate": (b"a: \xed\xa0\x80\n", "invalid UTF-8", 1, 4),
    "control character": (b"a: 1\nb: x\x07y\n", "character that YAML does not permit", 2, 5),
    "key that is no string": (b"no: 1\n", "key `no` is not read as a string; put it in quotes", 1, 1),
    "number as key": (b"1: x\n", "key `1` is not read as a string; put it in quotes", 1, 1),
    "list as key": (b"? [a]\n: 1\n", "key that is a list or a mapping", 1, 3),
    "too deep": (b"[" * 70 + b"]" * 70, "nested deeper than 64 levels", 1, 65),
    "much too deep": (b"[" * 20_000, "nested deeper than 64 levels", 1, 65),
    "open quote": (b"a: 'x\n", "found unexpected end of stream", 2, 1),
}
JSON_LIES = {
    "empty": (b"", "no JSON value begins here", 1, 1),
    "duplicate key": (b'{"a": 1,\n "a": 2}', "duplicate key `a`", 2, 2),
    "escaped duplicate key": (b'{"a": 1, "\\u0061": 2}', "duplicate key `a`", 1, 10),
    "nan": (b'{"a": NaN}', "no JSON value begins here", 1, 7),
    "infinity": (b'{"a": -Infinity}', "no JSON value begins here", 1, 7),
    "two documents": (b"{}\n{}", "text after the end of the document", 2, 1),
    "mark": (b"\xef\xbb\xbf{}", "byte-order mark; save as UTF-8 without one", 1, 1),
    "invalid utf-8": (b'{"a": "\xff"}', "invalid UTF-8", 1, 8),
    "comma at the end": (b'{"a": 1,}', "a key in double quotes is wanted here", 1, 9),
    "comma missing": (b'{"a": 1 "b": 2}', "`,` is wanted here", 1, 9),
    "octal": (b"[010]", "`,` is wanted here", 1, 3),
    "too deep": (b"[" * 20_000, "nested deeper than 64 levels", 1, 66),
    "open string": (b'{"a": "x', "unterminated string starting at", 1, 7),
    "line break in a string": (b'{"a": "x\ny"}', "invalid control character at", 1, 9),
    "endless number": (b"[" + b"9" * 5000 + b"]", "number of more than 400 digits", 1, 2),
}


@pytest.mark.parametrize(("data", "reason", "line", "column"), YAML_LIES.values(), ids=YAML_LIES.keys())
def test_yaml_that_lies(data: bytes, reason: str, line: int, column: int) -> None:
    """Each way in which YAML can lie has its reason and its place."""
    with pytest.raises(DocumentUnreadableError) as caught:
        read_yaml(data, source="file.yaml")

    error = caught.value
    assert (error.reason, error.line, error.column, error.source) == (reason, line, column, "file.yaml")


@pytest.mark.parametrize(("data", "reason", "line", "column"), JSON_LIES.values(), ids=JSON_LIES.keys())
def test_json_that_lies(data: bytes, reason: str, line: int, column: int) -> None:
    """JSON is held to the same: one meaning, with line and column."""
    with pytest.raises(DocumentUnreadableError) as caught:
        read_json(data, source="file.json")

    error = caught.value
    assert (error.reason, error.line, error.column, error.source) == (reason, line, column, "file.json")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", False),
        ("on", True),
        ("~", None),
        ("12", 12),
        ("-3", -3),
        ("0.5", 0.5),
        ("'no'", "no"),
        ("!!str 123", "123"),
        ("=", "="),
        ("010", Surprise("010", "number")),
        ("0x1F", Surprise("0x1F", "number")),
        ("1_000", Surprise("1_000", "number")),
        ("12:30:45", Surprise("12:30:45", "number")),
        ("1:30.5", Surprise("1:30.5", "number")),
        ("9" * 50, Surprise("9" * 50, "number")),
        ("2026-04-07", Surprise("2026-04-07", "timestamp")),
        ("2026-04-07T12:00:00Z", Surprise("2026-04-07T12:00:00Z", "timestamp")),
    ],
)
def test_plain_scalars(text: str, value: object) -> None:
    """A scalar is what YAML says, and a surprise where hardly anybody means what YAML says."""
    assert read_yaml(f"a: {text}\n".encode()).value == {"a": value}


def test_timestamp_in_an_instant_field_is_the_text_as_written() -> None:
    """Unquoted timestamps are valid in instant fields only, in lists and nested mappings too."""
    data = (
        b"created_at: 2026-04-07T12:00:00+02:00\n"
        b"value: 2026-04-07\n"
        b"origin: {captured_at: 2026-04-07 12:00:00}\n"
    )
    document = read_yaml(data, instant_fields={"created_at", "captured_at"})

    assert document.value == {
        "created_at": "2026-04-07T12:00:00+02:00",
        "value": Surprise("2026-04-07", "timestamp"),
        "origin": {"captured_at": "2026-04-07 12:00:00"},
    }


@pytest.mark.parametrize("data", [b"a:\n  - b: x\n    c: [1, 2]\n", b'{"a":\n [{"b": "x",\n "c": [1, 2]}]}'])
def test_both_readers_tell_places(data: bytes) -> None:
    """Values and keys are found by path; what is missing is placed at the mapping that lacks it."""
    read = read_json if data.startswith(b"{") else read_yaml
    document = read(data)
    lines = data.decode().splitlines()

    assert document.value == {"a": [{"b": "x", "c": [1, 2]}]}
    line, column = document.positions.place(("a", 0, "c", 1)) or (0, 0)
    assert lines[line - 1][column - 1] == "2"
    key_line, key_column = document.positions.place(("a", 0, "c"), key=True) or (0, 0)
    assert lines[key_line - 1][key_column - 1 :].lstrip('"').startswith("c")
    assert document.positions.place(("a", 0, "missing")) == document.positions.place(("a", 0))


def test_file_that_is_not_there(tmp_path: Path) -> None:
    """A missing file, and a folder, are unreadable documents and no tracebacks."""
    with pytest.raises(DocumentUnreadableError, match="no such file or directory"):
        read_file(tmp_path / "absent.yaml")
    with pytest.raises(DocumentUnreadableError, match="is a directory"):
        read_file(tmp_path)


def test_empty_yaml_is_null() -> None:
    """An empty file, or one of comments, holds null; the schema then says what it wants instead."""
    assert [read_yaml(data).value for data in (b"", b"# nothing\n", b"---\n")] == [None, None, None]
