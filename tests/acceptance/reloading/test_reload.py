"""Other policies under a running memory: now and whole, or not at all."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from agent_runtime_ref import AsyncGovernedMemory, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.clock import RandomIds, SystemClock
from agent_runtime_ref.enforcement.reload import PolicyOrigin
from agent_runtime_ref.errors import BundleError, DecisionLogError, StoreError, UsageError
from agent_runtime_ref.policy.build import build_bundle, write_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.signing import Signer, Verification
from agent_runtime_ref.policy.signing_keys import signing_key
from agent_runtime_ref.policy.source import PolicySource
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import FaultyStore
from tests.reloading import Policies, answer, answers, fill, told
from tests.signing import key_files
from tests.support import caller, candidate, query


class TestReload:
    """`reload_policies`: now, whole, or not at all."""

    def test_the_next_call_is_decided_by_the_new_policies(
        self, memory: GovernedMemory, archive: Path, policies: Policies, tmp_path: Path
    ) -> None:
        """Answers, digest and revision change together, and the log says when."""
        before = answer(memory)
        write_bundle(policies.strict, archive)

        assert memory.reload_policies() is True
        assert [before, answer(memory)] == list(answers(policies).values())
        assert memory.bundle.revision == policies.strict.revision
        (loaded,) = told(memory, "policy_loaded")
        assert (loaded["digest"], loaded["previous_digest"]) == (policies.strict.digest, policies.open.digest)
        trace = (tmp_path / "trace.jsonl").read_text("utf-8").splitlines()
        kinds = [json.loads(line)["event_type"] for line in trace]
        assert kinds.count("policy_loaded") == 2

    def test_the_same_policies_are_no_change(self, memory: GovernedMemory, archive: Path) -> None:
        """Nothing is replaced, and nothing told."""
        os.utime(archive)

        assert memory.reload_policies() is False
        assert told(memory, "policy_loaded") == []

    def test_another_revision_of_the_same_policies(self, memory: GovernedMemory, archive: Path) -> None:
        """Decisions name the revision, so it is taken as well."""
        write_bundle(build_bundle(policies_path(), revision="next"), archive)

        assert memory.reload_policies() is True
        assert memory.bundle.revision == "next"

    def test_settings_and_detectors_change_with_the_rules(
        self, memory: GovernedMemory, archive: Path, tmp_path: Path
    ) -> None:
        """What Python takes from a bundle is of the same bundle as what Rego takes."""
        folder = tmp_path / "harmless"
        shutil.copytree(policies_path(), folder)
        path = folder / "memory/settings/data.json"
        settings = json.loads(path.read_text("utf-8"))
        settings["protected_keys"]["prefixes"].append("billing.")
        path.write_text(json.dumps(settings), "utf-8")
        write_bundle(build_bundle(folder), archive)
        written = partial(memory.write, candidate("The total is due", key="billing.total"), caller=caller())

        assert written().effect == "allow"
        memory.reload_policies()
        with pytest.raises(PolicyDeniedError):
            memory.write(candidate("The total was due", key="billing.total"), caller=caller())

    def test_a_subject_keeps_its_pseudonym(
        self, memory: GovernedMemory, archive: Path, policies: Policies
    ) -> None:
        """A change of policies does not make two persons of one in the log."""
        for built in (policies.strict, policies.open):
            answer(memory)
            write_bundle(built, archive)
            memory.reload_policies()
        answer(memory)
        lines = [json.loads(line) for line in memory.log_lines(read=True)]

        assert len({line["requested_by"] for line in lines if "requested_by" in line}) == 1

    def test_policies_that_were_given(self) -> None:
        """A memory over an engine of the caller's has no place to look at."""
        bundle = PolicySource.at(None).load()
        memory = GovernedMemory(
            store=open_store("memory:", log=None),
            engine=EmbeddedEngine(bundle),
            bundle=bundle,
            clock=SystemClock(),
            ids=RandomIds(),
        )
        with memory, pytest.raises(UsageError, match="was given its policies"):
            memory.reload_policies()

    def test_a_closed_memory(self, memory: GovernedMemory) -> None:
        """It takes nothing any more."""
        memory.close()

        with pytest.raises(StoreError, match="closed"):
            memory.reload_policies()

    def test_in_asyncio(self, archive: Path, policies: Policies) -> None:
        """The asynchronous facade takes them too, off the event loop."""

        async def scenario() -> tuple[bool, str]:
            async with await AsyncGovernedMemory.open("memory:", policies=archive) as memory:
                write_bundle(policies.strict, archive)
                taken = await memory.reload_policies()
                result = await memory.read(query(), caller=caller())
                return taken, result.decision.policy_digest

        assert asyncio.run(scenario()) == (True, policies.strict.digest)


def broken(policies: Policies, path: Path, case: str) -> None:
    """Put something at `path` that cannot be used."""
    if case == "cut":
        path.write_bytes(policies.strict.archive[: len(policies.strict.archive) // 2])
    elif case == "no archive":
        path.write_bytes(b"no archive")
    elif case == "gone":
        path.unlink()
    elif case == "not parsed":
        path.unlink()
        shutil.copytree(policies_path(), path)
        (path / "memory/read/broken.rego").write_text("package memory.read\n\nallow {", "utf-8")
    elif case == "detectors":
        path.unlink()
        shutil.copytree(policies_path(), path)
        (path / "memory/detectors/data.json").write_text('{"patterns": 7, "families": 7}', "utf-8")
    else:
        path.unlink()
        shutil.copytree(policies_path(), path)
        shutil.rmtree(path / "memory/read")
        (path / "memory/read.rego").write_text(
            'package memory.read\n\nimport rego.v1\n\ndecision := {"allow": true, "deny": []}\n', "utf-8"
        )


class TestBroken:
    """What cannot be used changes nothing and is an alarm."""

    @pytest.mark.parametrize(
        ("case", "reason"),
        [
            ("cut", "bundle_missing"),
            ("no archive", "bundle_missing"),
            ("gone", "bundle_missing"),
            ("not parsed", "engine_exception"),
            ("detectors", "settings_malformed"),
            ("permits everything", "engine_wrong_type"),
        ],
    )
    def test_the_last_good_ones_stay(
        self, memory: GovernedMemory, archive: Path, policies: Policies, case: str, reason: str
    ) -> None:
        """The error says why, the alarm is in the log, and reads go on as before."""
        before = answer(memory)
        broken(policies, archive, case)

        with pytest.raises(BundleError) as caught:
            memory.reload_policies()

        assert caught.value.reason == reason
        assert answer(memory) == before
        (alarm,) = told(memory, "policy_engine_failure")
        assert (alarm["reason"], alarm["operation"], alarm["digest"]) == (
            reason, "reload", policies.open.digest,
        )  # fmt: skip
        assert told(memory, "policy_loaded") == []

    def test_the_pinned_bundle_and_no_other(self, archive: Path, policies: Policies) -> None:
        """A pin holds for whatever comes later."""
        with GovernedMemory.open("memory:", policies=archive, policies_digest=policies.open.digest) as memory:
            fill(memory)
            write_bundle(policies.strict, archive)
            with pytest.raises(BundleError, match="bundle_tampered"):
                memory.reload_policies()

            assert answer(memory) == answers(policies)[policies.open.digest]

    def test_only_signed_policies_follow_signed_ones(self, policies: Policies, tmp_path: Path) -> None:
        """The signature is asked for each time, by the key that lies there then."""
        path = tmp_path / "bundle.tar.gz"
        private, public = key_files(tmp_path / "keys", "ES256")
        signer = Signer(signing_key(private, "ES256"), "key-1", "memory")
        write_bundle(build_bundle(policies_path(), signer=signer), path)
        wanted = Verification(public, None, "key-1", "memory")
        with GovernedMemory.open("memory:", policies=path, verification=wanted) as memory:
            write_bundle(policies.strict, path)
            with pytest.raises(BundleError, match="it is not signed"):
                memory.reload_policies()
            assert memory.bundle.digest == policies.open.digest

            other, rotated = key_files(tmp_path / "keys", "ES256", number=1)
            again = Signer(signing_key(other, "ES256"), "key-1", "memory")
            write_bundle(build_bundle(policies_path(), revision="2", signer=again), path)
            with pytest.raises(BundleError, match="its signature does not hold"):
                memory.reload_policies()
            shutil.copy(rotated, public)

            assert memory.reload_policies() is True

    def test_a_change_that_cannot_be_written_down(self, archive: Path, policies: Policies) -> None:
        """A log without the change would not tell by what later answers were decided."""
        source = PolicySource.at(archive)
        content = source.content()
        bundle = source.bundle(content)
        store = FaultyStore(
            open_store("memory:", log=None),
            method="append_lines",
            error=DecisionLogError("memory:", "disk full"),
        )
        memory = GovernedMemory(
            store=store,  # type: ignore[arg-type]
            engine=EmbeddedEngine(bundle),
            bundle=bundle,
            clock=SystemClock(),
            ids=RandomIds(),
            origin=PolicyOrigin(source, EmbeddedEngine, content.mark),
        )
        with memory:
            write_bundle(policies.strict, archive)
            with pytest.raises(DecisionLogError):
                memory.reload_policies()
            assert memory.bundle.digest == policies.open.digest

            assert memory.reload_policies() is True
