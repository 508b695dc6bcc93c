"""`policy build` at the command line, and commands that demand what it signs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.config import load_settings
from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.resources import policies_path
from tests.acceptance.command import Command, as_process
from tests.signing import SECRET, key_files, packed, unpacked
from tests.unit.policy_documents import READ


@pytest.fixture
def question(tmp_path: Path) -> Path:
    """An input of the read policy."""
    path = tmp_path / "input.json"
    path.write_text(json.dumps(READ), "utf-8")
    return path


def test_what_it_prints(command: Command, tmp_path: Path) -> None:
    """File, digest, revision, roots, signature and files, as JSON."""
    path = tmp_path / "bundle.tar.gz"
    private, _ = key_files(tmp_path, "RS256")
    answer = command(
        "policy", "build", "-o", path, "--signing-key", private, "--key-id", "key-1", "--scope", "memory"
    )  # fmt: skip
    bundle = load_bundle(path)

    assert answer.code == 0
    assert answer.document == {
        "file": str(path),
        "bytes": path.stat().st_size,
        "digest": bundle.digest,
        "revision": bundle.revision,
        "roots": ["memory"],
        "signature": {"algorithm": "RS256", "keyid": "key-1", "scope": "memory"},
        "files": sorted(unpacked(path.read_bytes())),
    }
    assert path.stat().st_mode & 0o777 == 0o644


def test_two_processes_make_the_same_bytes(tmp_path: Path) -> None:
    """Another hash seed, folder and mask of the file mode make no other archive."""
    archives = []
    for number, seed in enumerate(("1", "2")):
        path = tmp_path / f"{number}.tar.gz"
        secret, _ = key_files(tmp_path, "HS256")
        words = ["policy", "build", "-o", path, "--signing-alg", "HS256", "--signing-key", secret]
        assert as_process(*words, PYTHONHASHSEED=seed, TZ=f"UTC{number}").code == 0
        archives.append(path.read_bytes())

    assert archives[0] == archives[1]


def test_a_key_is_never_shown(command: Command, tmp_path: Path) -> None:
    """Neither the answer nor the archive holds the secret."""
    path = tmp_path / "bundle.tar.gz"
    secret, _ = key_files(tmp_path, "HS256")
    answer = command("policy", "build", "-o", path, "--signing-alg", "HS256", "--signing-key", secret)

    assert SECRET.decode() not in answer.out + answer.err
    assert all(SECRET not in raw for raw in unpacked(path.read_bytes()).values())


def test_a_secret_that_can_be_guessed(command: Command, tmp_path: Path) -> None:
    """It signs, as in OPA, and standard error says what it is worth."""
    secret = tmp_path / "secret"
    secret.write_bytes(b"guess me\n")
    path = tmp_path / "bundle.tar.gz"
    answer = command("policy", "build", "-o", path, "--signing-alg", "HS256", "--signing-key", secret)

    assert (answer.code, ".signatures.json" in answer.document["files"]) == (0, True)
    assert "shorter than 32 bytes" in answer.err
    assert "which is a part of the key" in answer.err


MISTAKES = {
    "a secret in the place of its file": (
        ["--signing-alg", "HS256", "--signing-key", SECRET.decode()], "keys are read from files only",
    ),
    "an algorithm without a key": (["--signing-alg", "HS256"], "name a key with --signing-key"),
    "a scope without a key": (["--scope", "memory"], "name a key with --signing-key"),
    "an algorithm that salts": (["--signing-alg", "PS256", "--signing-key", "k"], "invalid choice"),
    "no algorithm at all": (["--signing-alg", "none", "--signing-key", "k"], "invalid choice"),
    "a revision of two words": (["--revision", "a b"], "revision `a b` must be"),
    "policies that are not there": (["--policies", "/nowhere"], "no policies at /nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(command: Command, tmp_path: Path, case: str) -> None:
    """Exit code 2, one sentence, and no file."""
    words, said = MISTAKES[case]
    path = tmp_path / "bundle.tar.gz"
    answer = command("policy", "build", "-o", path, *words)

    assert (answer.code, said in answer.err, path.exists()) == (2, True, False), answer.err


def test_a_folder_is_no_file(command: Command, tmp_path: Path) -> None:
    """The archive is a file."""
    answer = command("policy", "build", "-o", tmp_path)

    assert (answer.code, "is a folder" in answer.err) == (2, True)


def test_what_the_extra_is_called(tmp_path: Path) -> None:
    """Without its packages signing says which extra brings them; building unsigned needs none."""
    (tmp_path / "jwt").mkdir()
    (tmp_path / "cryptography").mkdir()
    for name in ("jwt", "cryptography"):
        (tmp_path / name / "__init__.py").write_text(f"raise ModuleNotFoundError({name!r})", "utf-8")
    private, _ = key_files(tmp_path / "keys", "RS256")
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    words = [sys.executable, "-m", "agent_runtime_ref", "policy", "build", "-o", str(tmp_path / "b.tar.gz")]
    environment = {**os.environ, "PYTHONPATH": paths}
    plain = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    signed = subprocess.run(
        [*words, "--signing-key", str(private)], env=environment, capture_output=True, text=True, check=False
    )

    assert plain.returncode == 0, plain.stderr
    assert (signed.returncode, "pip install '.[signing]' in a checkout" in signed.stderr) == (2, True)


class TestDemanded:
    """A key in runtime.yaml or in the environment demands the signature of every command that decides."""

    @pytest.fixture
    def signed(self, command: Command, tmp_path: Path) -> Path:
        """A signed bundle."""
        path = tmp_path / "bundle.tar.gz"
        private, _ = key_files(tmp_path, "ES256")
        words = ["--signing-alg", "ES256", "--signing-key", private, "--key-id", "key-1", "--scope", "memory"]
        assert command("policy", "build", "-o", path, *words).code == 0
        return path

    @pytest.fixture
    def settings(self, signed: Path, tmp_path: Path) -> Path:
        """Settings beside the bundle that demand its signature."""
        path = tmp_path / "runtime.yaml"
        policies = {
            "path": "bundle.tar.gz",
            "verification_key": "ES256-0.pub",
            "keyid": "key-1",
            "scope": "memory",
        }
        path.write_text(json.dumps({"policies": policies}), "utf-8")
        return path

    def commands(self, question: Path) -> list[list[str | Path]]:
        """Return commands that decide."""
        return [
            ["policy", "decide", "read", "--input", question],
            ["inspect-memory", "--tenant", "tenant-acme"],
        ]

    def test_it_is_asked_for(self, command: Command, signed: Path, settings: Path, question: Path) -> None:
        """The signed bundle decides; without its signature, or changed, nothing does."""
        files = unpacked(signed.read_bytes())
        changed = files | {"memory/read/walls.rego": files["memory/read/walls.rego"] + b"\n"}
        unsigned = {name: raw for name, raw in files.items() if name != ".signatures.json"}
        for words in self.commands(question):
            signed.write_bytes(packed(files))
            assert command("--settings", settings, *words).code == 0
            for spoilt in (changed, unsigned):
                signed.write_bytes(packed(spoilt))
                answer = command("--settings", settings, *words)
                assert (answer.code, answer.out, "bundle_tampered" in answer.err) == (2, "", True)

    def test_other_policies_are_held_to_it_as_well(
        self, command: Command, settings: Path, question: Path
    ) -> None:
        """Naming another folder does not lift what the settings demand."""
        answer = command(
            "--settings", settings, "policy", "decide", "read", "--input", question,
            "--policies", policies_path(),
        )  # fmt: skip

        assert (answer.code, "it is not signed" in answer.err) == (2, True)

    def test_by_the_environment(
        self, command: Command, signed: Path, question: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Variables demand the same; a scope without a key is a mistake and not passed over."""
        monkeypatch.setenv("AGENT_RUNTIME_POLICIES", str(signed))
        monkeypatch.setenv("AGENT_RUNTIME_POLICIES_SCOPE", "memory")
        for words in self.commands(question):
            assert "is set, but no key" in command(*words).err
        monkeypatch.setenv("AGENT_RUNTIME_POLICIES_VERIFICATION_KEY", str(signed.parent / "ES256-0.pub"))
        for words in self.commands(question):
            assert command(*words).code == 0
        monkeypatch.setenv("AGENT_RUNTIME_POLICIES_SCOPE", "other")
        for words in self.commands(question):
            assert "of another scope than `other`" in command(*words).err

    def test_a_memory_in_python_is_held_to_it(
        self, signed: Path, settings: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`GovernedMemory` asks the environment too, and takes all of runtime.yaml with `from_settings`."""
        document = json.loads(settings.read_text("utf-8"))
        document["policies"]["reload_seconds"] = 1
        settings.write_text(json.dumps(document), "utf-8")
        with GovernedMemory.from_settings(load_settings(settings)) as memory:
            assert memory.bundle.digest == load_bundle(signed).digest
            assert memory._policies._watcher is not None
        monkeypatch.setenv("AGENT_RUNTIME_POLICIES_VERIFICATION_KEY", str(signed.parent / "ES256-0.pub"))
        with pytest.raises(BundleError, match="it is not signed"):
            GovernedMemory.open("memory:")
