"""`policy build`: what is in a bundle, that it is the same each time, and who may say that it is good."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
from pathlib import Path

import jwt
import pytest

from agent_runtime_ref.errors import BundleError, UsageError
from agent_runtime_ref.policy.build import build_bundle, write_bundle
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.signing import Signer, Verification
from agent_runtime_ref.policy.signing_keys import SIGNING_ALGORITHMS, signing_key
from agent_runtime_ref.resources import policies_path
from tests.signing import key_files, packed, unpacked
from tests.unit.policy_documents import READ, write_document


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled policies that a test may change."""
    copy = tmp_path / "policies"
    shutil.copytree(policies_path(), copy)
    return copy


def signer(folder: Path, algorithm: str = "HS256", *, scope: str = "memory") -> Signer:
    """Return who signs with a key of this run."""
    return Signer(signing_key(key_files(folder, algorithm)[0], algorithm), "key-1", scope)


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a bundle that is signed with the secret of this run."""
    return unpacked(build_bundle(policies_path(), signer=signer(tmp_path_factory.mktemp("keys"))).archive)


class TestContent:
    """What an archive holds."""

    def test_what_decides_and_nothing_else(self, folder: Path) -> None:
        """Tests, controls, capabilities and an editor's files stay out."""
        (folder / "memory/read/.read.rego.swp").write_bytes(b"\0")
        (folder / "memory/read/.#read.rego").symlink_to("nobody@nowhere")
        (folder / "memory/read/read.rego~").write_text("package memory.read", "utf-8")
        modules = {name for name, _ in load_bundle(folder).modules}
        data = {path.relative_to(folder).as_posix() for path in folder.rglob("data.json")}

        names = set(build_bundle(folder).names)

        assert names == {".manifest", *modules, *data}
        assert not any(name.endswith("_test.rego") for name in names)

    def test_the_manifest(self, folder: Path) -> None:
        """It names revision, roots, version of Rego and, among the metadata, the digest."""
        (folder / ".manifest").write_text(
            '{"revision": "7", "roots": ["memory"], "metadata": {"owner": "risk"}}', "utf-8"
        )
        built = build_bundle(folder)

        assert json.loads(unpacked(built.archive)[".manifest"]) == {
            "revision": f"7+{built.digest[7:19]}",
            "roots": ["memory"],
            "rego_version": 1,
            "metadata": {"owner": "risk", "digest": built.digest},
        }

    def test_a_revision_of_ones_own(self, folder: Path) -> None:
        """What is asked for is taken as it is; built anew, an archive keeps its derived revision."""
        first = build_bundle(folder)
        archive = folder.parent / "bundle.tar.gz"
        write_bundle(first, archive)

        assert build_bundle(folder, revision="2026-11-30.1").revision == "2026-11-30.1"
        assert build_bundle(archive) == first

    @pytest.mark.parametrize("revision", ["", " ", "a b", "-x", "a\n", "x" * 129, "../x"])
    def test_no_revision(self, folder: Path, revision: str) -> None:
        """A revision stands in each decision, so it is a plain word."""
        with pytest.raises(UsageError, match=r"^revision `"):
            build_bundle(folder, revision=revision)

    def test_broken_policies_are_not_shipped(self, folder: Path) -> None:
        """What an engine cannot use is refused while it is built."""
        (folder / "memory/read/broken.rego").write_text("package memory.read\n\nallow {", "utf-8")

        with pytest.raises(BundleError, match="engine_exception"):
            build_bundle(folder)


class TestSameBytes:
    """The same policies give the same archive."""

    @pytest.mark.parametrize("algorithm", [None, *SIGNING_ALGORITHMS])
    def test_whoever_builds_and_when(self, folder: Path, tmp_path: Path, algorithm: str | None) -> None:
        """Times, modes and the order of a folder leave no trace; neither does signing twice."""
        who = None if algorithm is None else signer(tmp_path / "keys", algorithm)
        first = build_bundle(folder, signer=who)
        other = tmp_path / "other"
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_file():
                target = other / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(path.read_bytes())
                target.chmod(0o400)
                os.utime(target, (1, 1))

        assert build_bundle(other, signer=who).archive == first.archive

    def test_it_decides_as_its_folder(self, folder: Path, tmp_path: Path) -> None:
        """Archive and folder have one digest, and the embedded engine answers alike."""
        archive = tmp_path / "bundle.tar.gz"
        write_bundle(build_bundle(folder), archive)
        questions = [("memory.read", json.dumps(READ)), ("memory.write", write_document(3))]
        bundles = [load_bundle(folder), load_bundle(archive)]

        answers = [[EmbeddedEngine(one).evaluate(*question) for question in questions] for one in bundles]

        assert bundles[0].digest == bundles[1].digest
        assert answers[0] == answers[1]

    def test_writing_replaces_in_one_step(self, folder: Path, tmp_path: Path) -> None:
        """Whoever has the old archive open keeps it; no other file is left beside it."""
        path = tmp_path / "out" / "bundle.tar.gz"
        path.parent.mkdir()
        path.write_bytes(b"old")
        with path.open("rb") as before:
            write_bundle(build_bundle(folder), path)

            assert before.read() == b"old"
        assert [one.name for one in path.parent.iterdir()] == ["bundle.tar.gz"]

    def test_a_place_that_is_not_there(self, folder: Path, tmp_path: Path) -> None:
        """A folder that does not exist is named."""
        with pytest.raises(UsageError, match=r"not writable: no such file or directory"):
            write_bundle(build_bundle(folder), tmp_path / "nowhere" / "bundle.tar.gz")


class TestSignature:
    """A bundle that must be signed is refused before anything in it is looked at."""

    @pytest.fixture
    def files(self, signed: dict[str, bytes]) -> dict[str, bytes]:
        """The files of a signed bundle, to be spoilt."""
        return dict(signed)

    @staticmethod
    def verification(tmp_path: Path, **changes: object) -> Verification:
        """What holds for the bundle that `signer` signs."""
        key = key_files(tmp_path / "keys", "HS256")[1]
        wanted = {"key_file": key, "algorithm": "HS256", "keyid": "key-1", "scope": "memory"}
        return Verification(**(wanted | changes))  # type: ignore[arg-type]

    def refusal(self, tmp_path: Path, files: dict[str, bytes], **changes: object) -> str:
        """Return why a bundle of these files is refused."""
        path = tmp_path / "bundle.tar.gz"
        path.write_bytes(packed(files))
        with pytest.raises(BundleError) as caught:
            load_bundle(path, verification=self.verification(tmp_path, **changes))
        assert caught.value.reason == "bundle_tampered"
        return caught.value.detail.removeprefix(f"{path}: ")

    @pytest.mark.parametrize("algorithm", SIGNING_ALGORITHMS)
    def test_each_algorithm(self, folder: Path, tmp_path: Path, algorithm: str) -> None:
        """What one key signs, its other part verifies; a public key needs no algorithm named."""
        path = tmp_path / "bundle.tar.gz"
        write_bundle(build_bundle(folder, signer=signer(tmp_path / "keys", algorithm)), path)
        public = key_files(tmp_path / "keys", algorithm)[1]
        named = algorithm if algorithm.startswith("HS") else None

        bundle = load_bundle(path, verification=Verification(public, named, "key-1", "memory"))

        assert bundle.digest == load_bundle(folder).digest

    def test_a_signed_folder(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """An archive that was unpacked is held to its signature as well, hidden files among it."""
        folder = tmp_path / "unpacked"
        for name, raw in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(raw)
        wanted = self.verification(tmp_path)
        load_bundle(folder, verification=wanted)
        (folder / ".hidden").write_bytes(b"")

        with pytest.raises(BundleError, match=r"file `\.hidden` is not signed"):
            load_bundle(folder, verification=wanted)

    def test_no_signature(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """A configured key demands a signature."""
        del files[".signatures.json"]

        assert self.refusal(tmp_path, files).startswith("it is not signed")

    def test_another_key(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """Whoever has another secret cannot vouch."""
        other = key_files(tmp_path / "keys", "HS256", number=1)[1]

        assert self.refusal(tmp_path, files, key_file=other).startswith("its signature does not hold")

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"keyid": "key-2"}, "it is signed under another key id than `key-2`"),
            ({"scope": "other"}, "its signature is of another scope than `other`"),
            ({"scope": ""}, "its signature is of another scope than ``"),
        ],
    )
    def test_another_purpose(
        self, files: dict[str, bytes], tmp_path: Path, changes: dict[str, str], said: str
    ) -> None:
        """Key id and scope are held to what is configured; no scope permits only a signature without one."""
        assert self.refusal(tmp_path, files, **changes) == said

    @pytest.mark.parametrize(
        "name", ["memory/read/read.rego", "memory/settings/data.json", ".manifest", "memory/read/walls.rego"]
    )
    def test_a_changed_file(self, files: dict[str, bytes], tmp_path: Path, name: str) -> None:
        """One other value in one file is found."""
        files[name] = files[name].replace(b"1", b"2", 1) if name != "memory/read/read.rego" else b"package x"

        assert self.refusal(tmp_path, files) == f"file `{name}` is not the one that was signed"

    def test_blanks_in_data_are_no_change(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """As with OPA, JSON is signed by its value."""
        name = "memory/settings/data.json"
        files[name] = json.dumps(json.loads(files[name]), indent=7).encode()
        files[".manifest"] = json.dumps({**json.loads(files[".manifest"]), "metadata": {}}).encode()
        path = tmp_path / "bundle.tar.gz"
        path.write_bytes(packed(files))

        with pytest.raises(BundleError, match=r"file `\.manifest` is not the one"):
            load_bundle(path, verification=self.verification(tmp_path))

    @pytest.mark.parametrize("name", ["memory/read/more.rego", "memory/more/data.json", "README.md"])
    def test_a_file_more(self, files: dict[str, bytes], tmp_path: Path, name: str) -> None:
        """Whatever is not signed is not accepted, even where it would not decide."""
        files[name] = b"{}"

        assert self.refusal(tmp_path, files) == f"file `{name}` is not signed"

    def test_a_file_less(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """A rule that was left out is missed."""
        del files["memory/read/walls.rego"]

        assert self.refusal(tmp_path, files) == "signed file `memory/read/walls.rego` is missing"

    def test_no_algorithm(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """A signature that says it is none is none."""
        payload = jwt.decode(self.token(files), options={"verify_signature": False})
        files[".signatures.json"] = json.dumps({"signatures": [jwt.encode(payload, None, "none")]}).encode()

        assert self.refusal(tmp_path, files).startswith("its signature does not hold")

    def test_a_public_key_is_no_secret(self, files: dict[str, bytes], tmp_path: Path) -> None:
        """Who knows the public key cannot sign with it, by saying that it was a secret."""
        _, public = key_files(tmp_path / "keys", "RS256")
        payload = jwt.decode(self.token(files), options={"verify_signature": False})

        def part(raw: bytes) -> str:
            return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()

        head = part(json.dumps({"alg": "HS256", "kid": "key-1", "typ": "JWT"}).encode())
        text = f"{head}.{part(json.dumps(payload).encode())}"
        forged = f"{text}.{part(hmac.digest(public.read_bytes(), text.encode(), hashlib.sha256))}"
        files[".signatures.json"] = json.dumps({"signatures": [forged]}).encode()

        for algorithm in (None, "RS256"):
            said = self.refusal(tmp_path, files, key_file=public, algorithm=algorithm)
            assert said.startswith("its signature does not hold")
        with pytest.raises(UsageError, match="is a PEM file, and no secret"):
            load_bundle(tmp_path / "bundle.tar.gz", verification=Verification(public, "HS256"))

    @pytest.mark.parametrize(
        "document",
        [
            "{}",
            "[]",
            '{"signatures": []}',
            '{"signatures": [1]}',
            '{"signatures": ["a.b.c"]}',
            '{"signatures": ["a.b.c", "a.b.c"]}',
            '{"signatures": ["TOKEN"], "plugin": "custom"}',
            '{"signatures": ["TOKEN", "TOKEN"]}',
        ],
    )
    def test_a_signatures_file_that_is_none(
        self, files: dict[str, bytes], tmp_path: Path, document: str
    ) -> None:
        """Exactly one signature, checked by nobody else."""
        files[".signatures.json"] = document.replace("TOKEN", self.token(files)).encode()

        assert self.refusal(tmp_path, files)

    @pytest.mark.parametrize(
        "rows",
        [
            None,
            [{"name": "a"}],
            [{"name": "a", "hash": "00", "algorithm": "MD5"}],
            [{"name": "a", "hash": "00", "algorithm": []}],
            [
                {"name": "a", "hash": "00", "algorithm": "SHA-256"},
                {"name": "a", "hash": "01", "algorithm": "SHA-256"},
            ],
        ],
    )
    def test_a_payload_that_says_nothing(self, files: dict[str, bytes], tmp_path: Path, rows: object) -> None:
        """Names, strong hashes, and each file once."""
        secret = key_files(tmp_path / "keys", "HS256")[0].read_bytes()
        payload = {"files": rows, "keyid": "key-1", "scope": "memory"}
        token = jwt.encode(payload, secret, "HS256", headers={"kid": "key-1"})
        files[".signatures.json"] = json.dumps({"signatures": [token]}).encode()

        assert self.refusal(tmp_path, files).startswith("its signature lists")

    @staticmethod
    def token(files: dict[str, bytes]) -> str:
        """Return the JWT of a signed bundle."""
        (token,) = json.loads(files[".signatures.json"])["signatures"]
        return str(token)


class TestKeys:
    """Keys come from files, and each is good for what it is."""

    @pytest.mark.parametrize(
        ("content", "algorithm", "said"),
        [
            (b"", "HS256", "is empty"),
            (b"-----BEGIN PUBLIC KEY-----\nAAAA\n", "HS256", "is a PEM file, and no secret"),
            (b"0" * 64, "RS256", "no private key in PEM"),
            (b"-----BEGIN PRIVATE KEY-----\nAAAA\n", "RS256", "no private key in PEM"),
        ],
    )
    def test_no_key_to_sign_with(self, tmp_path: Path, content: bytes, algorithm: str, said: str) -> None:
        """What is wrong with a key is said in a sentence."""
        path = tmp_path / "key"
        path.write_bytes(content)

        with pytest.raises(UsageError, match=said):
            signing_key(path, algorithm)

    @pytest.mark.parametrize(
        ("content", "algorithm", "said"),
        [
            (b"guess me", "HS256", ["shorter than 32 bytes"]),
            (b"0" * 40, "HS512", ["shorter than 64 bytes"]),
            (b"0" * 64 + b"\n", "HS256", ["which is a part of the key"]),
            (b"0" * 64, "HS512", []),
        ],
    )
    def test_a_weak_secret(self, tmp_path: Path, content: bytes, algorithm: str, said: list[str]) -> None:
        """OPA takes any secret, so one can sign with it and is warned; nobody here trusts a short one."""
        path = tmp_path / "key"
        path.write_bytes(content)
        notes = signing_key(path, algorithm).notes

        assert [any(one in note for note in notes) for one in said] == [True] * len(notes)
        if any("shorter" in note for note in notes):
            with pytest.raises(UsageError, match="can be guessed"):
                load_bundle(verification=Verification(path, algorithm))

    def test_a_key_of_another_kind(self, tmp_path: Path) -> None:
        """An elliptic key signs with its own curve's algorithm only."""
        private, _ = key_files(tmp_path, "ES256")

        for algorithm in ("ES384", "RS256"):
            with pytest.raises(UsageError, match="of another kind"):
                signing_key(private, algorithm)

    def test_a_private_key_does_not_verify(self, tmp_path: Path) -> None:
        """Whoever only checks has no use for what signs."""
        private, _ = key_files(tmp_path, "RS256")

        with pytest.raises(UsageError, match="a private one; give its public part"):
            load_bundle(verification=Verification(private))

    def test_a_secret_must_be_called_one(self, tmp_path: Path) -> None:
        """Text that was meant as a public key must not become a secret that everybody knows."""
        secret, _ = key_files(tmp_path, "HS256")

        with pytest.raises(UsageError, match="name its algorithm, such as HS256"):
            load_bundle(verification=Verification(secret))

    def test_a_key_that_is_not_there(self, tmp_path: Path) -> None:
        """Nothing is loaded unverified because a key is missing."""
        with pytest.raises(UsageError, match="not readable: no such file"):
            load_bundle(verification=Verification(tmp_path / "nowhere"))
