"""Archives from anywhere: what a bundle never has is refused, and nothing is unpacked to find out."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy import archive as limits
from agent_runtime_ref.policy.build import build_bundle
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.resources import policies_path
from tests.signing import packed, unpacked


@pytest.fixture(scope="module")
def built() -> bytes:
    """A bundle as it is built."""
    return build_bundle(policies_path()).archive


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0) -> tarfile.TarInfo:
    """Return the header of a member."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def refusal(tmp_path: Path, archive: bytes) -> BundleError:
    """Return the refusal of an archive."""
    path = tmp_path / "bundle.tar.gz"
    path.write_bytes(archive)
    with pytest.raises(BundleError) as caught:
        load_bundle(path)
    return caught.value


NAMES = [
    "../read.rego",
    "memory/../../read.rego",
    "//etc/read.rego",
    "/./read.rego",
    "memory//read.rego",
    "memory\\read.rego",
    "C:read.rego",
    "memory/re\nad.rego",
    "memory/re\u202ead.rego",
    "memory/re\u200bad.rego",
    "memory/read.REGO",
    "memory/Data.json",
    ".Manifest",
    "memory/read.ｒego",
    "x" * 600 + ".rego",
]
LINKS = [
    member("memory/read/more.rego", tarfile.SYMTYPE, "/etc/passwd"),
    member("memory/read/more.rego", tarfile.LNKTYPE, "memory/read/read.rego"),
    member("memory/read/more.rego", tarfile.FIFOTYPE),
    member("memory/read/more.rego", tarfile.CHRTYPE),
    member("memory/read/more.rego", tarfile.CONTTYPE),
]


class TestMembers:
    """One member that no bundle has is enough."""

    @pytest.mark.parametrize("name", NAMES, ids=ascii)
    def test_names(self, built: bytes, tmp_path: Path, name: str) -> None:
        """A name that leaves the bundle, or that two readers read in two ways."""
        files = unpacked(built)

        assert refusal(tmp_path, packed([*files.items(), (name, b"{}")])).reason == "bundle_tampered"

    @pytest.mark.parametrize("link", LINKS, ids=["symbolic", "hard", "pipe", "device", "contiguous"])
    def test_links_and_devices(self, built: bytes, tmp_path: Path, link: tarfile.TarInfo) -> None:
        """Files, and folders, and nothing else."""
        found = refusal(tmp_path, packed([*unpacked(built).items(), link]))

        assert (found.reason, "is no plain file" in found.detail) == ("bundle_tampered", True)

    @pytest.mark.parametrize("header", [{"size": "3"}, {"hdrcharset": "BINARY"}], ids=["size", "letters"])
    def test_headers_that_move_what_they_describe(
        self, built: bytes, tmp_path: Path, header: dict[str, str]
    ) -> None:
        """A header before a file that says anew where it ends, or how its name is written."""
        moved = member("memory/notes.txt")
        moved.pax_headers = header
        found = refusal(tmp_path, packed([*unpacked(built).items(), moved]))

        assert (found.reason, "is no plain file" in found.detail) == ("bundle_tampered", True)

    @pytest.mark.parametrize("header", [{"path": "memory/more.rego"}, {"mtime": "1"}], ids=["path", "time"])
    def test_headers_for_all_files(self, tmp_path: Path, header: dict[str, str]) -> None:
        """Python applies them to every file, OPA to none."""
        target = io.BytesIO()
        with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT, pax_headers=header) as tar:
            tar.addfile(member("memory/read.rego"), io.BytesIO())

        found = refusal(tmp_path, gzip.compress(target.getvalue()))
        assert (found.reason, "for all its files" in found.detail) == ("bundle_tampered", True)

    @pytest.mark.parametrize(
        "again", ["memory/read/read.rego", "./memory/read/read.rego", "memory/Read/read.rego"]
    )
    def test_twice(self, built: bytes, tmp_path: Path, again: str) -> None:
        """A name that stands twice, by another path or in other letters, is two answers to one question."""
        found = refusal(tmp_path, packed([*unpacked(built).items(), (again, b"package memory.read")]))

        assert (found.reason, "stands twice" in found.detail) == ("bundle_tampered", True)

    @pytest.mark.parametrize(
        "name",
        ["patch.json", "policy.wasm", "plan.json", ".manifest.pb", "memory/.manifest", "x.manifest",
         "memory/.signatures.json",],
    )  # fmt: skip
    def test_what_an_opa_would_load(self, built: bytes, tmp_path: Path, name: str) -> None:
        """By what this engine cannot decide, no other engine decides either."""
        assert refusal(tmp_path, packed(unpacked(built) | {name: b"{}"})).reason == "settings_malformed"

    def test_a_hidden_module_counts(self, built: bytes, tmp_path: Path) -> None:
        """Nobody edits in an archive: OPA loads such a file, so it decides here too."""
        path = tmp_path / "bundle.tar.gz"
        files = {name: raw for name, raw in unpacked(built).items() if name != ".manifest"}
        path.write_bytes(packed(files | {".config/memory/read/.more.rego": b"package memory.read"}))

        assert ".config/memory/read/.more.rego" in {name for name, _ in load_bundle(path).modules}

    def test_a_test_that_is_none(self, built: bytes, tmp_path: Path) -> None:
        """A rule cannot hide from this engine, and not from OPA, behind the name of a test."""
        rule = b"package memory.read\n\ndeny contains 1 if true\n"
        test = b"package memory.more_test\n"
        found = refusal(tmp_path, packed(unpacked(built) | {"memory/read/more_test.rego": rule}))
        (tmp_path / "bundle.tar.gz").write_bytes(packed(unpacked(built) | {"memory/more_test.rego": test}))

        assert (found.reason, "must end in `_test`" in found.detail) == ("settings_malformed", True)
        assert load_bundle(tmp_path / "bundle.tar.gz").digest == load_bundle().digest

    def test_what_nobody_loads_is_passed_over(self, built: bytes, tmp_path: Path) -> None:
        """A README in an unsigned archive changes nothing."""
        path = tmp_path / "bundle.tar.gz"
        path.write_bytes(packed(unpacked(built) | {"README.md": b"hello"}))

        assert load_bundle(path).digest == load_bundle().digest

    def test_a_changed_archive_that_names_its_digest(self, built: bytes, tmp_path: Path) -> None:
        """Even unsigned, a bundle that was changed after it was built is noticed."""
        files = unpacked(built)
        files["memory/read/read.rego"] += b"\n"

        assert "its manifest names another" in refusal(tmp_path, packed(files)).detail


class TestDamage:
    """Half of a bundle is none."""

    def test_cut_at_any_place(self, built: bytes, tmp_path: Path) -> None:
        """A file that is still being copied is refused at each length."""
        for length in range(0, len(built), len(built) // 40):
            assert refusal(tmp_path, built[:length]).reason == "bundle_missing"

    def test_cut_inside(self, built: bytes, tmp_path: Path) -> None:
        """A whole .gz around a tar that ends early, even between two files."""
        data = gzip.decompress(built)
        for length in range(512, len(data) - 1024, 51200):
            assert refusal(tmp_path, gzip.compress(data[: length // 512 * 512])).reason == "bundle_missing"

    def test_a_damaged_header_is_no_end(self, built: bytes, tmp_path: Path) -> None:
        """A header that cannot be read does not pass for the end of the archive."""
        data = bytearray(gzip.decompress(built))
        with tarfile.open(fileobj=io.BytesIO(bytes(data))) as tar:
            offset = tar.getmembers()[-2].offset
        data[offset + 148] ^= 0xFF

        assert refusal(tmp_path, gzip.compress(bytes(data))).reason == "bundle_missing"

    def test_something_after_the_end(self, built: bytes, tmp_path: Path) -> None:
        """A second archive behind the first one is nobody's."""
        data = gzip.decompress(built)

        assert "goes on after its end" in refusal(tmp_path, gzip.compress(data + data)).detail
        assert refusal(tmp_path, built + b"more").reason == "bundle_missing"


class TestSize:
    """What is too large is refused before it is held."""

    @pytest.mark.parametrize("inside", ["file", "header", "sparse"])
    def test_a_bomb(self, tmp_path: Path, inside: str) -> None:
        """A small archive of zeros is not held: not as a file, not as a header that says it is a gigabyte."""
        gigabyte = 1024**3
        kind = {"file": tarfile.REGTYPE, "header": tarfile.XHDTYPE, "sparse": tarfile.GNUTYPE_SPARSE}[inside]
        header = member("memory/data.json", kind, size=gigabyte).tobuf(tarfile.GNU_FORMAT)
        path = tmp_path / "bundle.tar.gz"
        with gzip.open(path, "wb", compresslevel=1) as file:
            file.write(header)
            for _ in range(gigabyte // 2**24 // 8):
                file.write(bytes(2**24))
        tracemalloc.start()
        try:
            with pytest.raises(BundleError) as caught:
                load_bundle(path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert caught.value.reason == "bundle_missing"
        assert peak < 4 * limits.TOTAL_BYTES_MAX

    def test_one_large_file(self, built: bytes, tmp_path: Path) -> None:
        """A file has a bound of its own."""
        files = unpacked(built) | {"more.rego": bytes(limits.FILE_BYTES_MAX + 1)}

        assert f"larger than {limits.FILE_BYTES_MAX} bytes" in refusal(tmp_path, packed(files)).detail

    def test_many_files(self, tmp_path: Path) -> None:
        """So has their number, folders among them."""
        many = [(f"{number}.rego", b"package memory") for number in range(limits.FILES_MAX + 1)]
        folders = [member(f"f{number}", tarfile.DIRTYPE) for number in range(2 * limits.FILES_MAX + 1)]

        for members in (many, folders):
            assert "more files than a bundle may have" in refusal(tmp_path, packed(members)).detail

    def test_deep_data(self, built: bytes, tmp_path: Path) -> None:
        """Data nested without end is refused, and does not end the process."""
        for depth in (400, 700, 950, 2_000, 100_000):
            files = unpacked(built) | {".manifest": b"{}"}
            for place in ("memory/deep/data.json", "memory/data.json"):
                inner = b'{"a":' * depth + b"1" + b"}" * depth
                files[place] = inner if "deep" in place else b'{"deep":' + inner + b"}"

            assert refusal(tmp_path, packed(files)).reason == "settings_malformed"


ROOTS = {
    "a package outside": ({"roots": ["memory/write", "memory/settings", "memory/detectors"]}, "package `"),
    "no root at all": ({"roots": []}, "outside the roots"),
    "roots that overlap": ({"roots": ["memory", "memory/read"]}, "overlap"),
    "everything and something": ({"roots": ["", "memory"]}, "overlap"),
    "a root that only begins alike": ({"roots": ["mem"]}, "outside the roots"),
    "roots that are no list": ({"roots": "memory"}, "must be a list"),
    "an older Rego": ({"rego_version": 0}, "rego_version must be 1"),
    "an older Rego for one file": ({"file_rego_versions": {"/memory/read/read.rego": 0}}, "rego_version"),
    "a revision that is no text": ({"revision": 7}, "revision must be"),
    "a revision with a line end": ({"revision": "a\nb"}, "revision must be"),
}


class TestManifest:
    """The manifest is held to as OPA holds to it."""

    @pytest.mark.parametrize("case", ROOTS)
    def test_refused(self, built: bytes, tmp_path: Path, case: str) -> None:
        """What lies outside the roots belongs to another bundle."""
        manifest, said = ROOTS[case]
        found = refusal(tmp_path, packed(unpacked(built) | {".manifest": json.dumps(manifest).encode()}))

        assert (found.reason, said in found.detail) == ("settings_malformed", True), found.detail

    def test_data_outside(self, built: bytes, tmp_path: Path) -> None:
        """Each package may lie within the roots and a setting not."""
        roots = sorted({package_of(text).replace(".", "/") for _, text in load_bundle().modules})
        manifest = json.dumps({"roots": roots}).encode()
        found = refusal(tmp_path, packed(unpacked(built) | {".manifest": manifest}))

        assert (found.reason, "data at `memory/" in found.detail) == ("settings_malformed", True)

    @pytest.mark.parametrize("roots", [["memory"], ["/memory/"], [""], ["memory", "other"], None])
    def test_permitted(self, built: bytes, tmp_path: Path, roots: list[str] | None) -> None:
        """Slashes at the ends and roots that nothing uses do no harm."""
        path = tmp_path / "bundle.tar.gz"
        path.write_bytes(packed(unpacked(built) | {".manifest": json.dumps({"roots": roots}).encode()}))

        assert load_bundle(path).modules == load_bundle().modules
