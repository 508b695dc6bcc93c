"""What `policy build` makes, in a stock OPA with verification on; and what OPA makes, here."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import jwt
import pytest

from agent_runtime_ref.cli.policy.build import ALGORITHMS
from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.build import build_bundle, write_bundle
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.signing import Signer, Verification, signatures_file
from agent_runtime_ref.policy.signing_keys import SIGNING_ALGORITHMS, Key, signing_key
from agent_runtime_ref.resources import policies_path
from tests.opa import OpaProcess, require_opa
from tests.signing import key_files, packed, unpacked
from tests.unit.policy_documents import READ, write_document

SCOPE = "memory"


@pytest.fixture(scope="module")
def opa() -> Path:
    """The real binary."""
    return require_opa()


def signer(folder: Path, algorithm: str = "RS256") -> Signer:
    """Return who signs with a key of this run."""
    return Signer(signing_key(key_files(folder, algorithm)[0], algorithm), "key-1", SCOPE)


@contextmanager
def verifying(tmp_path: Path, archive: Path, algorithm: str = "RS256") -> Iterator[OpaProcess]:
    """Start a server that takes this archive, if its signature holds; ready or not."""
    key = key_files(tmp_path / "keys", algorithm)[1].read_text("utf-8")
    config = {
        "bundles": {
            "memory": {
                "resource": archive.as_uri(),
                "signing": {"keyid": "key-1", "scope": SCOPE},
                "polling": {"min_delay_seconds": 1, "max_delay_seconds": 1},
            }
        },
        "keys": {"key-1": {"algorithm": algorithm, "key": key}},
    }
    path = tmp_path / "opa.json"
    path.write_text(json.dumps(config), "utf-8")
    with OpaProcess("--config-file", path, ready="/health") as server:
        yield server


def answered(server: OpaProcess, path: str, document: str | None = None) -> object:
    """Return what the server says under a path; None where that is undefined."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    try:
        body = None if document is None else f'{{"input":{document}}}'
        connection.request("GET" if body is None else "POST", path, body)
        return json.loads(connection.getresponse().read() or b"null")
    finally:
        connection.close()


def activated(server: OpaProcess, seconds: float = 20.0) -> bool:
    """Wait for the server's bundle; tell whether it came."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if answered(server, "/health?bundles") == {}:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("algorithm", ["HS256", "RS256", "ES256"])
def test_a_stock_opa_activates_it_and_decides_alike(opa: Path, tmp_path: Path, algorithm: str) -> None:
    """With `keyid` and `scope` demanded, the bundle is taken, tells its revision and answers as we do."""
    archive = tmp_path / "bundle.tar.gz"
    write_bundle(build_bundle(policies_path(), signer=signer(tmp_path / "keys", algorithm)), archive)
    bundle = load_bundle(archive)
    engine = EmbeddedEngine(bundle)
    with verifying(tmp_path, archive, algorithm) as server:
        assert activated(server)
        manifest = answered(server, "/v1/data/system/bundles/memory/manifest")
        read, write = json.dumps(READ), write_document(2)
        theirs = [
            answered(server, f"/v1/data/memory/{gate}/decision", text)
            for gate, text in (("read", read), ("write", write))
        ]

    ours = [engine.evaluate("memory.read", read), engine.evaluate("memory.write", write)]
    assert [{"result": one} for one in ours] == [_without_notes(one) for one in theirs]
    assert manifest["result"]["revision"] == bundle.revision  # type: ignore[index]
    assert manifest["result"]["metadata"] == {"digest": bundle.digest}  # type: ignore[index]


def _without_notes(answer: object) -> object:
    """Return an answer without what the server adds about itself."""
    assert isinstance(answer, dict)
    return {"result": answer["result"]}


def _spoilt(files: dict[str, bytes], case: str) -> dict[str, bytes]:
    if case == "changed":
        files["memory/read/walls.rego"] += b"# harmless\n"
    elif case == "settings":
        files["memory/settings/data.json"] = files["memory/settings/data.json"].replace(b"100", b"101")
    elif case == "revision":
        files[".manifest"] = files[".manifest"].replace(b'"revision":"', b'"revision":"9')
    elif case == "more":
        files["memory/read/more.rego"] = b"package memory.read\n"
    elif case == "less":
        del files["memory/read/walls.rego"]
    else:
        del files[".signatures.json"]
    return files


@pytest.mark.parametrize("case", ["changed", "settings", "revision", "more", "less", "unsigned"])
def test_both_refuse_a_tampered_one(opa: Path, tmp_path: Path, case: str) -> None:
    """What OPA refuses is refused here, and the reverse."""
    built = build_bundle(policies_path(), signer=signer(tmp_path / "keys"))
    archive = tmp_path / "bundle.tar.gz"
    archive.write_bytes(packed(_spoilt(unpacked(built.archive), case)))
    public = key_files(tmp_path / "keys", "RS256")[1]
    with pytest.raises(BundleError) as caught:
        load_bundle(archive, verification=Verification(public, None, "key-1", SCOPE))
    assert caught.value.reason == "bundle_tampered"

    assert _opa_refuses(opa, tmp_path, archive)
    archive.write_bytes(built.archive)
    assert not _opa_refuses(opa, tmp_path, archive)


def _opa_refuses(opa: Path, tmp_path: Path, archive: Path) -> bool:
    """Tell whether OPA refuses to load a bundle that must be signed."""
    public = key_files(tmp_path / "keys", "RS256")[1]
    done = subprocess.run(
        [opa, "build", "--bundle", archive, "-o", tmp_path / "out.tar.gz", "--verification-key", public,
         "--verification-key-id", "key-1", "--signing-alg", "RS256", "--scope", SCOPE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode != 0


def test_a_server_does_not_run_a_tampered_one(opa: Path, tmp_path: Path) -> None:
    """A server that verifies never activates it; with the good bundle at its place it does."""
    built = build_bundle(policies_path(), signer=signer(tmp_path / "keys"))
    archive = tmp_path / "bundle.tar.gz"
    archive.write_bytes(packed(_spoilt(unpacked(built.archive), "changed")))
    with verifying(tmp_path, archive) as server:
        assert not activated(server, seconds=3)
        assert answered(server, "/v1/data/memory/read/decision") == {}
    write_bundle(built, archive)
    with verifying(tmp_path, archive) as server:
        assert activated(server)


def test_what_opa_signs_is_verified_here(opa: Path, tmp_path: Path) -> None:
    """A bundle of `opa build` is taken, and refused when a value of its data changes."""
    private, public = key_files(tmp_path / "keys", "ES256")
    claims = tmp_path / "claims.json"
    claims.write_text(json.dumps({"scope": SCOPE, "keyid": "key-1"}), "utf-8")
    archive = tmp_path / "bundle.tar.gz"
    subprocess.run(
        [opa, "build", "--bundle", policies_path(), "--ignore", "*_test.rego", "-o", archive,
         "--signing-key", private, "--signing-alg", "ES256", "--claims-file", claims, "--revision", "r1"],
        check=True, capture_output=True,
    )  # fmt: skip
    wanted = Verification(public, None, None, SCOPE)
    bundle = load_bundle(archive, verification=wanted)
    EmbeddedEngine(bundle)
    files = {name.removeprefix("/"): raw for name, raw in unpacked(archive.read_bytes()).items()}
    archive.write_bytes(packed(files | {"data.json": files["data.json"].replace(b"100", b"101", 1)}))

    assert bundle.revision == "r1"
    with pytest.raises(BundleError, match=r"`data\.json` is not the one"):
        load_bundle(archive, verification=wanted)


STRANGE = [
    '{"n": 1.50, "big": 123456789012345678901234567890, "e": 1E5, "zero": -0, "small": 1e-7}',
    '{"b": 1, "a": 2, "é": 3, "Z": 4, "😀": 5, "\\uffee": 6}',
    '{"text": "<&> \\u2028 \\u2029 \\u0001 \\u007f \\\\ / \\/ \\b\\f\\n\\r\\t \\ud83d\\ude00"}',
    '{"nested": [[], {}, null, true, false, [{"b": [], "a": ""}]]}',
    '  {"blank" :\n\t[ 1 , 2 ]\r\n}  ',
]


@pytest.mark.parametrize("text", STRANGE)
def test_json_is_hashed_as_opa_hashes_it(opa: Path, tmp_path: Path, text: str) -> None:
    """Numbers as they are written, keys in order, and the escapes of Go."""
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "data.json").write_text(text, "utf-8")
    secret = key_files(tmp_path / "keys", "HS256")[0]
    subprocess.run(
        [opa, "sign", "--bundle", folder, "--signing-key", secret, "--signing-alg", "HS256", "-o", tmp_path],
        check=True, capture_output=True,
    )  # fmt: skip
    ours = signatures_file((("data.json", text.encode()),), Signer(Key(secret.read_bytes(), ("HS256",))))

    assert _hashes(ours) == _hashes((tmp_path / ".signatures.json").read_bytes())


def _hashes(raw: bytes) -> dict[str, str]:
    (token,) = json.loads(raw)["signatures"]
    payload = jwt.decode(token, options={"verify_signature": False})
    return {row["name"].rpartition("/")[2]: row["hash"] for row in payload["files"]}


def test_the_command_offers_what_signs() -> None:
    """The list that `--help` shows without importing anything is the one that works."""
    assert ALGORITHMS == SIGNING_ALGORITHMS
