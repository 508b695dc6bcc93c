"""A memory that looks for other policies by itself: archives, folders, forks, and an OPA server."""

from __future__ import annotations

import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.errors import BundleError, GovernanceError, UsageError
from agent_runtime_ref.policy.build import write_bundle
from agent_runtime_ref.policy.source import PolicySource
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.testing import FrozenClock
from tests.opa import OpaProcess, require_opa
from tests.reloading import Policies, answer, answers, fill, told, waited
from tests.support import events


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
        with GovernedMemory.open("memory:", policies=archive, reload_seconds=0.8) as memory:
            with archive.open("wb") as file:
                for start in range(0, len(raw), len(raw) // 20 + 1):
                    file.write(raw[start : start + len(raw) // 20 + 1])
                    file.flush()
                    time.sleep(0.08)

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

    def test_an_end_without_closing(self, archive: Path, policies: Policies, tmp_path: Path) -> None:
        """A process that ends in the middle of a change says nothing about it."""
        new = tmp_path / "new.tar.gz"
        write_bundle(policies.strict, new)
        script = f"""
import os, time
from agent_runtime_ref import GovernedMemory
memory = GovernedMemory.open("memory:", policies={str(archive)!r}, reload_seconds=0.01)
os.replace({str(new)!r}, {str(archive)!r})
while memory.bundle.digest != {policies.strict.digest!r}:
    time.sleep(0.001)
"""
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=90
        )

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

            def alarmed() -> bool:
                clock.advance(seconds=301)  # again and again: on a busy machine it may be seen late
                return len(told(memory, "policy_engine_failure")) == 1

            assert quiet == []
            assert waited(alarmed)
            assert told(memory, "policy_engine_failure")[0]["reason"] == "bundle_mismatch"
            assert memory.bundle.digest == policies.open.digest
