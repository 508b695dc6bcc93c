"""Whether a server runs the policies it is to run: revision, modules, name and token."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from agent_runtime_ref import AsyncGovernedMemory, EngineFailureError, GovernedMemory
from agent_runtime_ref.policy.opa_server import OpaBundle, OpaSettings
from agent_runtime_ref.resources import policies_path
from tests.acceptance.opa_server.over_a_server import PATIENT, opened
from tests.opa import OpaProcess, require_opa
from tests.support import caller, query


def copied(policies: Path, to: Path, *, revision: str | None = None) -> Path:
    """Return a copy of the policies, perhaps with another revision."""
    shutil.copytree(policies, to)
    if revision is not None:
        manifest = to / ".manifest"
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"revision": revision}))
    return to


def with_lower_trust_floor(policies: Path, to: Path) -> Path:
    """Return a copy of the policies that lets more be read, under the same revision."""
    settings = copied(policies, to) / "memory" / "settings" / "data.json"
    text = settings.read_text()
    changed = text.replace('"max_query_limit": 100', '"max_query_limit": 1000')
    document = json.loads(text)
    if changed == text:
        document["trust_floors"] = {}
        changed = json.dumps(document)
    settings.write_text(changed)
    return to


def reason(memory: GovernedMemory) -> str:
    """Return why a read is refused."""
    with pytest.raises(EngineFailureError) as caught:
        memory.read(query(), caller=caller())
    return caught.value.reason


@pytest.mark.parametrize("asking", ["threads", "asyncio"])
def test_a_server_started_again_with_other_policies(
    own_server: OpaProcess, policies: Path, tmp_path: Path, asking: str
) -> None:
    """Policies changed under the same revision are noticed before an answer is believed."""
    changed = with_lower_trust_floor(policies, tmp_path / "changed")
    with opened(own_server, policies) as memory:
        both = AsyncGovernedMemory(memory)

        def outcome() -> str:
            try:
                if asking == "asyncio":
                    asyncio.run(both.read(query(), caller=caller()))
                else:
                    memory.read(query(), caller=caller())
            except EngineFailureError as failure:
                return failure.reason
            return "answered"

        found = [outcome()]
        for bundle in (changed, policies):
            own_server.kill()
            own_server.bundle_is(bundle)
            own_server.start()
            found.append(outcome())

    assert found == ["answered", "bundle_mismatch", "answered"]


def test_another_revision_is_a_refusal_unless_configured(
    own_server: OpaProcess, policies: Path, tmp_path: Path
) -> None:
    """The server runs the same rules under another name: refused, until the settings name it."""
    own_server.kill()
    own_server.bundle_is(copied(policies, tmp_path / "renamed", revision="2.0.0"))
    own_server.start()
    with opened(own_server, policies) as memory:
        unexpected = reason(memory)
    wanted = OpaSettings(deadline_ms=20_000, bundle=OpaBundle(revision="2.0.0"))
    with opened(own_server, policies, opa=wanted) as memory:
        decision = memory.read(query(), caller=caller()).decision

    assert unexpected == "bundle_mismatch"
    assert decision.policy_revision == "2.0.0"


@pytest.mark.parametrize(
    ("check", "revision", "expected"),
    [("revision", None, "1.0.0"), ("none", None, "unverified"), ("revision", "2.0.0", "bundle_mismatch")],
)
def test_less_may_be_checked(
    own_server: OpaProcess, policies: Path, tmp_path: Path, check: str, revision: str | None, expected: str
) -> None:
    """Other policies under the same revision pass where only the revision is checked, or nothing is."""
    own_server.kill()
    own_server.bundle_is(with_lower_trust_floor(policies, tmp_path / "changed"))
    own_server.start()
    settings = OpaSettings(deadline_ms=20_000, bundle=OpaBundle(revision=revision, check=check))

    with opened(own_server, policies, opa=settings) as memory:
        try:
            found = memory.read(query(), caller=caller()).decision.policy_revision
        except EngineFailureError as failure:
            found = failure.reason

    assert found == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("memory/read/more_test.rego", 'package memory.read\n\ndeny contains "x" if false\n'),
        ("memory/other/other.rego", "package memory.other\n\nallow := true\n"),
    ],
)
def test_a_module_too_many_is_a_refusal(
    own_server: OpaProcess, policies: Path, tmp_path: Path, name: str, text: str
) -> None:
    """Whatever its file is called: what stands in our packages decides."""
    folder = copied(policies, tmp_path / "more")
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    own_server.kill()
    own_server.bundle_is(folder)
    own_server.start()

    with opened(own_server, policies) as memory:
        assert reason(memory) == "bundle_mismatch"


def test_modules_of_tests_are_no_other_policies(policies: Path) -> None:
    """A server that was given the whole folder, tests included, runs the same policies."""
    require_opa()
    with (
        OpaProcess.of(policies_path()) as server,
        GovernedMemory.open("memory:", engine=server.engine, policies=policies, opa=PATIENT) as memory,
    ):
        assert memory.read(query(), caller=caller()).hits == ()


def test_a_token_is_what_the_server_demands(
    policies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that lets the holder of a token do what the how-to page lists: that is enough."""
    authz = tmp_path / "authz"
    authz.mkdir()
    (authz / ".manifest").write_text('{"revision": "7", "roots": ["system"], "rego_version": 1}')
    (authz / "authz.rego").write_text(
        "package system.authz\n\ndefault allow := false\n\n"
        'allow if input.path[0] == "health"\n\n'
        'allow if {\n\tinput.identity == "s3cret"\n'
        '\t[input.method, concat("/", input.path)] in {\n'
        '\t\t["POST", "v1/data/memory/read/decision"],\n\t\t["POST", "v1/data/memory/write/decision"],\n'
        '\t\t["GET", "v1/policies"],\n\t\t["GET", "v1/data/memory/settings"],\n\t}\n}\n'
    )
    arguments = ("--authentication", "token", "--authorization", "basic", "--bundle", policies, authz)
    with OpaProcess(*arguments) as server:
        with opened(server, policies) as memory:
            without = reason(memory)
        monkeypatch.setenv("AGENT_RUNTIME_OPA_TOKEN", "s3cret")
        with opened(server, policies) as memory:
            hits = memory.read(query(), caller=caller()).hits

    assert (without, hits) == ("engine_http_error", ())


@pytest.mark.parametrize("ours", [True, False])
def test_the_name_of_the_bundle(server: OpaProcess, policies: Path, ours: bool) -> None:
    """Where the settings name the bundle, only that one counts."""
    name = str(policies) if ours else "another"
    with opened(server, policies, opa=OpaSettings(deadline_ms=20_000, bundle=OpaBundle(name=name))) as memory:
        if ours:
            assert memory.read(query(), caller=caller()).hits == ()
        else:
            assert reason(memory) == "bundle_mismatch"
