"""Settings come from the option, the environment, the file, the default: in this order."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_runtime_ref import resources
from agent_runtime_ref.config import ENVIRONMENT, Settings, load_settings
from agent_runtime_ref.errors import DocumentValueError, ResourceNotFoundError


def written(folder: Path, text: str) -> Path:
    """Return the path of a runtime.yaml."""
    path = folder / "runtime.yaml"
    path.write_text(text, "utf-8")
    return path


def test_bundled_settings_are_the_defaults() -> None:
    """The bundled runtime.yaml says what the defaults say."""
    settings = load_settings(environ={})

    assert settings == Settings(file=str(resources.configs_path() / "runtime.yaml"))


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_each_setting_is_resolved_in_order(tmp_path: Path, name: str) -> None:
    """An option wins over the environment, which wins over the file; empty means unset."""
    values = {
        "store": ("memory:", "seeds:", "sqlite:/m.db"),
        "engine": ("embedded", "opa:http://127.0.0.1:1", "opa:http://127.0.0.1:2"),
        "policies_algorithm": ("RS256", "ES256", "HS256"),
    }.get(name, ("/option", "/environment", "/file"))
    section, _, part = name.partition("_")
    said = f"{name}: {values[2]!r}"
    if section == "policies":
        said = f"policies: {{{part or 'path'}: {values[2]!r}}}"
    path = written(tmp_path, said)
    environ = {ENVIRONMENT[name]: values[1]}

    resolved = (
        load_settings(path, options={name: values[0]}, environ=environ),
        load_settings(path, options={name: None}, environ=environ),
        load_settings(path, environ={ENVIRONMENT[name]: ""}),
    )

    assert tuple(getattr(settings, name) for settings in resolved) == values


def test_settings_file_of_the_environment(tmp_path: Path) -> None:
    """AGENT_RUNTIME_SETTINGS names the file where no option does."""
    path = written(tmp_path, "store: 'memory:'")

    assert load_settings(environ={"AGENT_RUNTIME_SETTINGS": str(path)}).store == "memory:"


def test_relative_paths_begin_at_the_file(tmp_path: Path) -> None:
    """What a file names is found from whichever folder a command is called in."""
    text = "store: sqlite:memory.db\npolicies: {path: mine}\nlog: log.jsonl\ntrace: /var/trace.jsonl\n"
    settings = load_settings(written(tmp_path, text), environ={})

    assert settings.store == f"sqlite:{tmp_path / 'memory.db'}"
    assert (settings.policies, settings.log) == (str(tmp_path / "mine"), str(tmp_path / "log.jsonl"))
    assert settings.trace == "/var/trace.jsonl"


def test_misspelt_override_is_refused() -> None:
    """An engine that the schema does not know is refused, wherever it was named."""
    with pytest.raises(DocumentValueError, match=r"^runtime_config \$\.engine: must be `embedded`"):
        load_settings(environ={"AGENT_RUNTIME_ENGINE": "embeded"})


def test_pinned_digest_holds_for_overridden_policies(tmp_path: Path) -> None:
    """An override of the path does not lift the digest that the file demands."""
    digest = "sha256:" + "0" * 64
    path = written(tmp_path, f"policies: {{digest: {digest}}}")

    assert load_settings(path, options={"policies": "/other"}, environ={}) == Settings(
        policies="/other", policies_digest=digest, file=str(path)
    )


def test_misplaced_resource_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was named and is not there is never replaced by the bundled one."""
    with pytest.raises(ResourceNotFoundError, match="no policies at"):
        resources.policies_path(tmp_path / "absent")
    monkeypatch.setenv("AGENT_RUNTIME_POLICIES", str(tmp_path / "absent"))
    with pytest.raises(ResourceNotFoundError, match="no policies at"):
        resources.policies_path()
    assert resources.policies_path(tmp_path) == tmp_path
