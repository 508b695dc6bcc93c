"""Diagnostics: registered fields alone, in the form that the command or the application chose."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
import structlog
from opentelemetry.sdk.trace import TracerProvider

import agent_runtime_ref
from agent_runtime_ref.__main__ import main
from agent_runtime_ref.cli.log_output import Output, format_of
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.telemetry import diagnostics

PACKAGE = Path(agent_runtime_ref.__file__).parent


def calls() -> list[tuple[str, ast.Call]]:
    """Every call of the package that says something through diagnostics, with its file."""
    found = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "diagnostics." not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            function = node.func if isinstance(node, ast.Call) else None
            if (
                isinstance(node, ast.Call)
                and isinstance(function, ast.Attribute)
                and isinstance(function.value, ast.Name)
                and function.value.id == "diagnostics"
                and function.attr in ("warning", "error", "bound")
            ):
                found.append((str(path), node))
    return found


def test_every_field_that_is_said_is_registered() -> None:
    """A field that is not would be left out in silence."""
    said = calls()
    assert len(said) > 10
    for path, call in said:
        for keyword in call.keywords:
            if keyword.arg is not None:  # ** passes on what another call was given
                assert keyword.arg in diagnostics.FIELDS, f"{path}:{call.lineno}"


def test_json_has_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """With level, time and name; what is not registered is left out, whatever it was called with."""
    with diagnostics.told_by(Output("json")), diagnostics.bound(command="read"):
        diagnostics.error("store_failure", code="store.error", content="a secret", reason="a\nb")
    streams = capsys.readouterr()
    line = json.loads(streams.err)

    assert streams.out == ""
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "store_failure",
        "level": "error",
        "code": "store.error",
        "reason": "a\nb",
        "command": "read",
    }


def test_the_console_shows_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    """What came from outside must not move the cursor, nor begin a line of its own."""
    with diagnostics.told_by(Output("console")):
        diagnostics.warning("store_repaired", path="a\x1b[31m\nb\u202e", size=3)
    (line,) = capsys.readouterr().err.splitlines()

    assert "store_repaired" in line
    assert r"a\x1b[31m\nb\u202e" in line
    assert "size=3" in line


def test_a_long_text_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    """An error of an engine may be as long as its policies."""
    with diagnostics.told_by(Output("json")):
        diagnostics.warning("policies_waiting", detail="x" * 5000)

    assert len(json.loads(capsys.readouterr().err)["detail"]) < 600


def test_a_line_has_the_ids_of_the_current_span(capsys: pytest.CaptureFixture[str]) -> None:
    """So that it is found beside the trace; outside of a span there are none."""
    tracer = TracerProvider().get_tracer("application")
    with diagnostics.told_by(Output("json")):
        with tracer.start_as_current_span("request") as span:
            diagnostics.warning("store_repaired")
        diagnostics.warning("store_repaired")
    inside, outside = map(json.loads, capsys.readouterr().err.splitlines())
    context = span.get_span_context()

    assert (inside["trace_id"], inside["span_id"]) == (f"{context.trace_id:032x}", f"{context.span_id:016x}")
    assert {"trace_id", "span_id"}.isdisjoint(outside)


def test_context_ends_with_its_block(capsys: pytest.CaptureFixture[str]) -> None:
    """What was bound further out is there again."""
    with diagnostics.told_by(Output("json")), diagnostics.bound(command="read"):
        with diagnostics.bound(command="write", operation="search"):
            diagnostics.warning("a")
        diagnostics.warning("b")
    inner, outer = map(json.loads, capsys.readouterr().err.splitlines())

    assert (inner["command"], inner["operation"]) == ("write", "search")
    assert outer["command"] == "read"
    assert "operation" not in outer


def test_the_library_configures_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Without anybody's configuration a line goes to standard error, which is no place for data."""
    assert structlog.is_configured() is False
    diagnostics.warning("store_repaired", path="a", content="a secret")
    streams = capsys.readouterr()

    assert structlog.is_configured() is False
    assert streams.out == ""
    assert "store_repaired" in streams.err
    assert "secret" not in streams.err


def test_an_application_that_configured_structlog_gets_the_lines() -> None:
    """In its form, and only the registered fields of them."""
    captured = structlog.testing.LogCapture()
    structlog.configure(processors=[captured])
    try:
        diagnostics.warning("store_repaired", path="a", content="a secret")
    finally:
        structlog.reset_defaults()

    assert captured.entries == [{"event": "store_repaired", "log_level": "warning", "path": "a"}]


def test_the_command_takes_the_form_from_its_option_or_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The option wins; a form that there is not is a mistake in usage."""
    assert format_of(None) == "console"
    monkeypatch.setenv("AGENT_RUNTIME_LOG_FORMAT", "json")
    assert format_of(None) == "json"
    assert format_of("console") == "console"
    monkeypatch.setenv("AGENT_RUNTIME_LOG_FORMAT", "xml")
    with pytest.raises(UsageError, match="console or json"):
        format_of(None)
    assert main(["inspect-memory"]) == 2


def test_a_command_says_what_it_repaired_in_the_chosen_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One JSON object, with the name of the command, beside the data and not among it."""
    store = tmp_path / "memory.jsonl"
    assert main(["inspect-memory", "--store", f"jsonl:{store}"]) in (0, 1, 2)
    from agent_runtime_ref.stores.registry import open_store

    open_store(f"jsonl:{store}").close()
    with store.open("ab") as file:
        file.write(b'{"step":"put"')
    capsys.readouterr()
    assert (
        main(["--log-format", "json", "inspect-memory", "--store", f"jsonl:{store}", "--format", "json"]) == 0
    )
    streams = capsys.readouterr()
    line = json.loads(streams.err.splitlines()[0])

    assert (line["event"], line["command"], line["size"]) == ("store_repaired", "inspect-memory", 13)
    assert json.loads(streams.out)["records"] == []
