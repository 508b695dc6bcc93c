"""Other policies under a running memory: each call is decided by one bundle, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AsyncGovernedMemory, GovernedMemory, PolicyDeniedError
from agent_runtime_ref.clock import RandomIds, SystemClock
from agent_runtime_ref.enforcement.reload import PolicyOrigin
from agent_runtime_ref.errors import BundleError, DecisionLogError, GovernanceError, StoreError, UsageError
from agent_runtime_ref.policy.build import BuiltBundle, build_bundle, write_bundle
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.signing import Signer, Verification
from agent_runtime_ref.policy.signing_keys import signing_key
from agent_runtime_ref.policy.source import PolicySource
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import FaultyStore, FrozenClock
from tests.opa import OpaProcess, require_opa
from tests.signing import key_files
from tests.support import caller, candidate, events, query


@dataclass(frozen=True)
class Policies:
    """Two bundles that answer the same query in two ways, and what each answers."""

    open: BuiltBundle  # medium trust is enough for long-term memory
    strict: BuiltBundle  # it takes high trust, which no record here has


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Policies:
    """The two bundles."""
    folder = tmp_path_factory.mktemp("policies") / "strict"
    shutil.copytree(policies_path(), folder)
    path = folder / "memory/settings/data.json"
    settings = json.loads(path.read_text("utf-8"))
    floors = settings["trust_floors"]
    for classes in floors.values():
        if "long_term" in classes:
            classes.remove("long_term")
    floors.setdefault("high", []).append("long_term")
    path.write_text(json.dumps(settings), "utf-8")
    return Policies(build_bundle(policies_path()), build_bundle(folder))


@pytest.fixture
def archive(policies: Policies, tmp_path: Path) -> Path:
    """Where the policies come from; the open ones at first."""
    path = tmp_path / "bundle.tar.gz"
    write_bundle(policies.open, path)
    return path


@pytest.fixture
def memory(archive: Path, tmp_path: Path) -> Iterator[GovernedMemory]:
    """A memory that holds two records of medium trust, and keeps its log in a file."""
    with GovernedMemory.open("memory:", policies=archive, trace=tmp_path / "trace.jsonl") as opened:
        fill(opened)
        yield opened


def fill(memory: GovernedMemory) -> None:
    """Keep two records."""
    for content in ("Support tickets go to the support queue", "Invoices go to the billing queue"):
        memory.write(candidate(content), caller=caller())


def answer(memory: GovernedMemory) -> tuple[str, int, Mapping[str, int], bool]:
    """Return by which bundle a read was answered, and what it saw."""
    result = memory.read(query(allowed_classes=["long_term"]), caller=caller(), text="queue")
    return result.decision.policy_digest, len(result.hits), result.exclusions, result.underfilled


def answers(policies: Policies) -> dict[str, tuple[str, int, Mapping[str, int], bool]]:
    """Return what each bundle answers."""
    return {
        policies.open.digest: (policies.open.digest, 2, {}, False),
        policies.strict.digest: (policies.strict.digest, 0, {"trust_below_minimum": 2}, False),
    }


def told(memory: GovernedMemory, event_type: str, *, read: bool = False) -> list[dict[str, Any]]:
    """Return the payloads of one kind of event, as the decision log holds them."""
    lines = [json.loads(line) for line in memory.log_lines(read=read)]
    rows = [line.get("event", line) for line in lines]
    return [row["payload"] for row in rows if row.get("event_type") == event_type]


def waited(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Tell whether something came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()


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


class Held(EmbeddedEngine):
    """An engine that waits at its first question after it was told to."""

    def __init__(self, bundle: Bundle) -> None:
        self.hold = self.closed = False
        self.asked, self.go_on = threading.Event(), threading.Event()
        super().__init__(bundle)

    def evaluate(self, entrypoint: str, document: str) -> dict[str, Any]:
        """Answer, once it may."""
        if self.hold:
            self.asked.set()
            assert self.go_on.wait(30)
        return super().evaluate(entrypoint, document)

    def close(self) -> None:
        """Close, and remember it."""
        self.closed = True
        super().close()


class TestUnderWay:
    """Calls that were under way."""

    def test_a_call_ends_under_the_policies_it_began_with(self, archive: Path, policies: Policies) -> None:
        """Both decisions of a read and its digest are of one bundle; its engine is closed after it."""
        source = PolicySource.at(archive)
        content = source.content()
        bundle = source.bundle(content)
        held = Held(bundle)
        memory = GovernedMemory(
            store=open_store("memory:", log=None),
            engine=held,
            bundle=bundle,
            clock=SystemClock(),
            ids=RandomIds(),
            origin=PolicyOrigin(source, Held, content.mark),
        )
        with memory:
            fill(memory)
            held.hold = True
            seen: list[object] = []
            thread = threading.Thread(target=lambda: seen.append(answer(memory)))
            thread.start()
            assert held.asked.wait(30)
            write_bundle(policies.strict, archive)
            memory.reload_policies()
            after, open_meanwhile = answer(memory), not held.closed
            held.go_on.set()
            thread.join()
            gc.collect()

            assert open_meanwhile
            assert after == answers(policies)[policies.strict.digest]
            assert seen == [answers(policies)[policies.open.digest]]
            assert held.closed

    @pytest.mark.parametrize("store", ["memory:", "sqlite"])
    def test_full_speed_while_bundles_alternate(
        self, archive: Path, policies: Policies, tmp_path: Path, store: str
    ) -> None:
        """Thousands of reads, dozens of switches, broken bundles in between: each answer is of one bundle."""
        address = store if store == "memory:" else f"sqlite:{tmp_path / 'memory.db'}"
        wanted = answers(policies)
        seen: list[tuple[str, int, Mapping[str, int], bool]] = []
        wrong: list[BaseException] = []
        stop = threading.Event()
        with GovernedMemory.open(address, policies=archive) as memory:
            fill(memory)

            def reads() -> None:
                try:
                    while not stop.is_set():
                        seen.append(answer(memory))
                except BaseException as error:
                    wrong.append(error)

            threads = [threading.Thread(target=reads) for _ in range(4)]
            for thread in threads:
                thread.start()
            for number in range(12):
                write_bundle(policies.open if number % 2 else policies.strict, archive)
                assert memory.reload_policies() is True
                if number % 4 == 0:
                    archive.write_bytes(policies.open.archive[: 10_000 + number])
                    with pytest.raises(BundleError):
                        memory.reload_policies()
            stop.set()
            for thread in threads:
                thread.join()

            assert wrong == []
            assert [one for one in seen if one != wanted[one[0]]] == []
            assert {one[0] for one in seen} == set(wanted)
            assert len(told(memory, "policy_engine_failure")) == 3
            assert len(told(memory, "policy_loaded")) == 12
            assert told(memory, "plan_mismatch", read=True) == []


class TestWatching:
    """With `reload_seconds` nobody has to ask."""

    @pytest.mark.parametrize("store", ["memory:", "sqlite"])
    def test_it_follows(self, archive: Path, policies: Policies, tmp_path: Path, store: str) -> None:
        """There and back again, without a call."""
        address = store if store == "memory:" else f"sqlite:{tmp_path / 'memory.db'}"
        with GovernedMemory.open(address, policies=archive, reload_seconds=0.02) as memory:
            fill(memory)
            for built in (policies.strict, policies.open):
                write_bundle(built, archive)

                assert waited(lambda built=built: memory.bundle.digest == built.digest)  # type: ignore[misc]
                assert answer(memory) == answers(policies)[built.digest]

    def test_what_is_being_copied_is_left_alone(self, archive: Path, policies: Policies) -> None:
        """While a file grows from look to look it is neither taken nor an alarm."""
        raw = policies.strict.archive
        with GovernedMemory.open("memory:", policies=archive, reload_seconds=0.2) as memory:
            with archive.open("wb") as file:
                for start in range(0, len(raw), len(raw) // 20 + 1):
                    file.write(raw[start : start + len(raw) // 20 + 1])
                    file.flush()
                    time.sleep(0.05)

            assert waited(lambda: memory.bundle.digest == policies.strict.digest)
            assert told(memory, "policy_engine_failure") == []

    def test_one_alarm_for_one_fault(self, archive: Path, policies: Policies) -> None:
        """A bundle that stays broken is told once, another fault anew; the next good one is taken."""
        with GovernedMemory.open("memory:", policies=archive, reload_seconds=0.02) as memory:
            for number, raw in enumerate([b"no archive", policies.strict.archive[:9_000]], start=1):
                archive.write_bytes(raw)
                assert waited(lambda n=number: len(told(memory, "policy_engine_failure")) == n)  # type: ignore[misc]
                time.sleep(0.5)
                assert len(told(memory, "policy_engine_failure")) == number
            write_bundle(policies.strict, archive)

            assert waited(lambda: memory.bundle.digest == policies.strict.digest)

    def test_closing_ends_the_thread(self, archive: Path) -> None:
        """No thread is left behind, neither by closing nor by forgetting to."""

        def watching() -> bool:
            return any(thread.name == "policies" for thread in threading.enumerate())

        with GovernedMemory.open("memory:", policies=archive, reload_seconds=0.02):
            assert watching()
        assert not watching()
        dropped = GovernedMemory.open("memory:", policies=archive, reload_seconds=0.02)
        dropped._store.close()
        del dropped
        gc.collect()
        assert waited(lambda: not watching())

    @pytest.mark.parametrize("seconds", [0, -1, 0.001, float("nan"), float("inf"), 86_401])
    def test_no_time_to_wait(self, archive: Path, seconds: float) -> None:
        """A loop without a pause, or without an end, is refused."""
        with pytest.raises(UsageError, match="policies are looked for every"):
            GovernedMemory.open("memory:", policies=archive, reload_seconds=seconds)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
    def test_a_forked_child_follows_too(self, archive: Path, policies: Policies, tmp_path: Path) -> None:
        """A server that forks its workers after loading has workers that follow."""
        new = tmp_path / "new.tar.gz"
        write_bundle(policies.strict, new)
        script = f"""
import os, sys, time
from agent_runtime_ref import GovernedMemory
memory = GovernedMemory.open("memory:", policies={str(archive)!r}, reload_seconds=0.05)
time.sleep(0.2)
child = os.fork()
if child == 0:
    end = time.monotonic() + 30
    while memory.bundle.digest != {policies.strict.digest!r} and time.monotonic() < end:
        time.sleep(0.02)
    os._exit(memory.bundle.digest != {policies.strict.digest!r})
time.sleep(0.2)
os.replace({str(new)!r}, {str(archive)!r})
_, status = os.waitpid(child, 0)
memory.close()
sys.exit(os.waitstatus_to_exitcode(status))
"""
        command = [sys.executable, "-W", "ignore", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)

        assert (done.returncode, done.stderr) == (0, "")


class TestFolder:
    """A folder is followed like an archive."""

    def test_an_edited_folder(self, policies: Policies, tmp_path: Path) -> None:
        """A changed setting is taken; an editor's files are no change."""
        folder = tmp_path / "policies"
        shutil.copytree(policies_path(), folder)
        with GovernedMemory.open("memory:", policies=folder) as memory:
            fill(memory)
            (folder / "memory/settings/.data.json.swp").write_bytes(b"\0")
            assert memory.reload_policies() is False
            path = folder / "memory/settings/data.json"
            settings = json.loads(path.read_text("utf-8"))
            settings["limits"]["query_max"] = 4
            path.write_text(json.dumps(settings), "utf-8")
            assert memory.reload_policies() is True
            with pytest.raises(PolicyDeniedError, match="limit_out_of_bounds"):
                answer(memory)

    def test_a_folder_that_keeps_changing(self, tmp_path: Path) -> None:
        """While somebody writes into it, it is not taken, and `reload_policies` says so."""
        folder = tmp_path / "policies"
        shutil.copytree(policies_path(), folder)
        path = folder / "memory/read/more.rego"

        def grow(_: float) -> None:
            with path.open("a", encoding="utf-8") as file:
                file.write("# more\n")

        with pytest.raises(BundleError, match="keeps changing while it is read"):
            PolicySource.at(folder).settled(grow)

    def test_a_pipe_is_no_bundle(self, tmp_path: Path) -> None:
        """Nobody waits for what never comes."""
        os.mkfifo(tmp_path / "pipe")

        with pytest.raises(BundleError, match="is no file"):
            PolicySource.at(tmp_path / "pipe").content()


class TestWithOpa:
    """With an OPA server, whose bundle is not ours to replace."""

    def test_it_follows_the_server(self, archive: Path, policies: Policies, tmp_path: Path) -> None:
        """While one of both is behind, the old policies decide or nothing does; then the new ones."""
        require_opa()
        theirs = tmp_path / "theirs.tar.gz"
        write_bundle(policies.open, theirs)
        trace = tmp_path / "trace.jsonl"
        with (
            OpaProcess("--watch", "--bundle", theirs) as server,
            GovernedMemory.open(
                "memory:", engine=server.engine, policies=archive, reload_seconds=0.1, trace=trace
            ) as memory,
        ):
            fill(memory)
            before = answer(memory)
            write_bundle(policies.strict, archive)
            time.sleep(1)
            behind = answer(memory)
            write_bundle(policies.strict, theirs)
            seen = []

            def switched() -> bool:
                try:
                    seen.append(answer(memory))
                except GovernanceError:
                    return False
                return seen[-1][0] == policies.strict.digest

            assert waited(switched)

        wanted = answers(policies)
        assert [before, behind] == [wanted[policies.open.digest]] * 2
        assert [one for one in seen if one != wanted[one[0]]] == []
        reloads = [row for row in events(trace) if row["payload"].get("operation") == "reload"]
        assert reloads == []

    def test_a_server_that_never_follows_is_an_alarm(
        self, archive: Path, policies: Policies, tmp_path: Path
    ) -> None:
        """After some minutes it is no longer called being behind."""
        require_opa()
        clock = FrozenClock()
        theirs = tmp_path / "theirs.tar.gz"
        write_bundle(policies.open, theirs)
        with (
            OpaProcess("--bundle", theirs) as server,
            GovernedMemory.open(
                "memory:", engine=server.engine, policies=archive, reload_seconds=0.05, clock=clock
            ) as memory,
        ):  # fmt: skip
            write_bundle(policies.strict, archive)
            time.sleep(1)
            quiet = told(memory, "policy_engine_failure")
            clock.advance(seconds=301)

            assert quiet == []
            assert waited(lambda: len(told(memory, "policy_engine_failure")) == 1)
            assert told(memory, "policy_engine_failure")[0]["reason"] == "bundle_mismatch"
            assert memory.bundle.digest == policies.open.digest
