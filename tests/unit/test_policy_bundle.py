"""Policy bundles: what is loaded, what is refused, and that settings are data."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.errors import BundleError, ResourceNotFoundError
from agent_runtime_ref.policy import EmbeddedEngine, bundle_files, load_bundle
from agent_runtime_ref.policy.bundle_files import read_content
from agent_runtime_ref.resources import policies_path
from tests.unit.policy_documents import READ


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the bundled policies that a test may spoil."""
    copy = tmp_path / "policies"
    shutil.copytree(policies_path(), copy)
    return copy


class TestBundles:
    """What is loaded, and what is refused."""

    def test_a_path_that_is_not_there(self, tmp_path: Path) -> None:
        """A named folder is never replaced by the bundled one."""
        with pytest.raises(ResourceNotFoundError):
            load_bundle(tmp_path / "nowhere")

    @pytest.mark.parametrize("spoil", ["empty", "file"])
    def test_bundle_missing(self, tmp_path: Path, spoil: str) -> None:
        """A folder without modules, or a file that is no archive, decides nothing."""
        place = tmp_path / spoil
        if spoil == "empty":
            place.mkdir()
        else:
            place.write_text("no archive", encoding="utf-8")

        with pytest.raises(BundleError) as caught:
            load_bundle(place)

        assert caught.value.reason == "bundle_missing"

    def test_a_folder_that_cannot_be_listed(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The rules in it may be those that deny; a hidden one is an editor's."""
        digest = load_bundle(folder).digest
        for name in ("memory/more", ".cache"):
            (folder / name).mkdir()
        listed = os.scandir
        closed = {str(folder / "memory/more"), str(folder / ".cache")}

        def scandir(path: Any) -> Any:
            if str(path) in closed:
                raise PermissionError(13, "Permission denied", str(path))
            return listed(path)

        monkeypatch.setattr(os, "scandir", scandir)
        with pytest.raises(BundleError, match=r"memory/more: Permission denied$") as caught:
            load_bundle(folder)
        closed.remove(str(folder / "memory/more"))

        assert caught.value.reason == "bundle_missing"
        assert load_bundle(folder).digest == digest
        with pytest.raises(BundleError, match=r"\.cache: Permission denied$"):
            read_content(folder, whole=True)

    def test_a_link_to_a_folder(self, folder: Path, tmp_path: Path) -> None:
        """Its rules would be passed over; so it is refused, by name. The place itself may be a link."""
        digest = load_bundle(folder).digest
        (tmp_path / "place").symlink_to(folder)
        (tmp_path / "elsewhere").mkdir()
        (folder / ".hidden").symlink_to(tmp_path / "elsewhere")

        assert load_bundle(tmp_path / "place").digest == digest
        (folder / "memory/more").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(BundleError, match="memory/more is a link to a folder; put the folder there"):
            load_bundle(folder)

    def test_a_place_that_leads_elsewhere_meanwhile(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A link that is set anew while it is read gives the one folder or the other, and no mixture."""
        digest = load_bundle(folder).digest
        other, place = tmp_path / "other", tmp_path / "place"
        other.mkdir()
        place.symlink_to(folder)
        read = bundle_files._read

        def read_and_switch(path: Path, bytes_max: int) -> bytes:
            raw = read(path, bytes_max)
            place.unlink()
            place.symlink_to(other)
            return raw

        monkeypatch.setattr(bundle_files, "_read", read_and_switch)

        assert load_bundle(place).digest == digest

    def test_a_name_that_is_no_text(self, folder: Path) -> None:
        """It has no place in a digest."""
        try:
            (folder / "memory" / os.fsdecode(b"\xff.rego")).write_text("package memory.more")
        except OSError:
            pytest.skip("no such names on this file system")

        with pytest.raises(BundleError, match="a name must be text; rename the file"):
            load_bundle(folder)

    def test_a_file_that_cannot_be_read_is_named(self, folder: Path) -> None:
        """The sentence says which of them."""
        (folder / "memory/more.rego").symlink_to(folder / "nowhere")

        with pytest.raises(BundleError, match=r"memory/more\.rego: No such file or directory$"):
            load_bundle(folder)

    @pytest.mark.parametrize("name", ["memory/read/read.rego", "memory/settings/data.json"])
    def test_bundle_tampered(self, folder: Path, name: str) -> None:
        """One byte more in any file that counts is another digest."""
        digest = load_bundle(folder).digest
        path = folder / name
        path.write_bytes(path.read_bytes() + b"\n")

        with pytest.raises(BundleError) as caught:
            load_bundle(folder, expected_digest=digest)

        assert caught.value.reason == "bundle_tampered"

    def test_the_manifest_counts_by_what_decides(self, folder: Path) -> None:
        """Other roots are another digest; a revision is a name for policies and none of them."""
        digest = load_bundle(folder).digest
        manifest = folder / ".manifest"
        manifest.write_text('{"revision": "other", "roots": ["memory"]}', encoding="utf-8")
        named = load_bundle(folder)
        manifest.write_text('{"roots": ["memory", "other"]}', encoding="utf-8")

        assert (named.digest, named.revision) == (digest, "other")
        assert load_bundle(folder).digest != digest

    def test_tests_do_not_count(self, folder: Path) -> None:
        """A changed test is no change of the policy."""
        digest = load_bundle(folder).digest
        (folder / "memory/read/read_test.rego").unlink()

        assert load_bundle(folder, expected_digest=digest).digest == digest

    def test_a_change_on_disk_changes_nothing_that_is_loaded(self, folder: Path) -> None:
        """What was loaded stays enforced, in new threads too."""
        engine = EmbeddedEngine(load_bundle(folder))
        shutil.rmtree(folder / "memory")
        answers: list[bool] = []
        thread = threading.Thread(
            target=lambda: answers.append(engine.evaluate("memory.read", json.dumps(READ))["allow"])
        )
        thread.start()
        thread.join()

        assert answers == [True]

    def test_an_archive_decides_as_its_folder(self, folder: Path, tmp_path: Path) -> None:
        """A .tar.gz with OPA's leading slash is the same bundle."""
        archive = tmp_path / "bundle.tar.gz"
        with tarfile.open(archive, "w:gz") as file:
            for path in sorted(folder.rglob("*")):
                file.add(path, "/" + path.relative_to(folder).as_posix(), recursive=False)

        assert load_bundle(archive).digest == load_bundle(folder).digest

    def test_a_policy_that_does_not_parse(self, folder: Path) -> None:
        """A module that is no Rego is found when the engine is made."""
        (folder / "memory/read/broken.rego").write_text("package memory.read\n\nallow {", encoding="utf-8")

        with pytest.raises(BundleError) as caught:
            EmbeddedEngine(load_bundle(folder))

        assert caught.value.reason == "engine_exception"

    def test_a_package_that_is_not_there(self, folder: Path) -> None:
        """A bundle without a write policy is found when the engine is made."""
        shutil.rmtree(folder / "memory/write")

        with pytest.raises(BundleError) as caught:
            EmbeddedEngine(load_bundle(folder))

        assert caught.value.reason == "engine_undefined"

    def test_a_policy_that_permits_everything(self, folder: Path) -> None:
        """A policy that does not refuse an empty input is not used."""
        shutil.rmtree(folder / "memory/read")
        (folder / "memory/read.rego").write_text(
            'package memory.read\n\nimport rego.v1\n\ndecision := {"allow": true, "deny": []}\n',
            encoding="utf-8",
        )

        with pytest.raises(BundleError) as caught:
            EmbeddedEngine(load_bundle(folder))

        assert caught.value.reason == "engine_wrong_type"


def without(name: str) -> Callable[[dict[str, Any]], object]:
    """Return a change that takes a setting away."""
    return lambda settings: settings.pop(name)


MALFORMED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a list missing": without("classes"),
    "a text for a number": lambda settings: settings["limits"].update(query_max="100"),
    "a fraction for an integer": lambda settings: settings["limits"].update(query_max=100.0),
    "a misspelt part": lambda settings: settings["limits"].update(querymax=100),
    "an unknown class in a purpose": lambda settings: settings["purposes"]["planning"]["classes"].update(
        x=True
    ),
    "an unknown source": lambda settings: settings["relearn_sources"].update(nobody=True),
    "a class without a trust floor": lambda settings: settings["trust_floors"].update(medium=["profile"]),
    "a class with two ages": lambda settings: settings["age_limits"].append(
        {"days": 1, "classes": ["profile"]}
    ),
    "an unknown trust level": lambda settings: settings["sources"]["recall"].update(trust_max="absolute"),
}


class TestSettings:
    """Settings that are not usable are a refusal, not a default."""

    @pytest.mark.parametrize("case", MALFORMED)
    def test_malformed(self, folder: Path, case: str) -> None:
        """Schema and references are checked before the policies are used."""
        path = folder / "memory/settings/data.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        MALFORMED[case](settings)
        path.write_text(json.dumps(settings), encoding="utf-8")

        with pytest.raises(BundleError) as caught:
            load_bundle(folder)

        assert caught.value.reason == "settings_malformed"

    @pytest.mark.parametrize("text", ["{", "[]", '{"a": 1, "a": 2}', '{"a": NaN}', '{"version": "\ud800"}'])
    def test_a_file_that_lies(self, folder: Path, text: str) -> None:
        """Broken JSON, duplicate keys, NaN and other encodings are refused."""
        path = folder / "memory/settings/data.json"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))

        with pytest.raises(BundleError) as caught:
            load_bundle(folder)

        assert caught.value.reason == "settings_malformed"

    def test_data_in_yaml_is_not_passed_over(self, folder: Path) -> None:
        """Another engine would read data.yaml, so it is refused and not ignored."""
        (folder / "memory/data.yaml").write_text("settings: {}\n", encoding="utf-8")

        with pytest.raises(BundleError, match=r"write data as data\.json"):
            load_bundle(folder)

    def test_a_threshold_is_changed_without_rego(self, folder: Path) -> None:
        """A reviewer who lowers the greatest limit sees it enforced."""
        path = folder / "memory/settings/data.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["limits"]["query_max"] = 4
        path.write_text(json.dumps(settings), encoding="utf-8")

        answer = EmbeddedEngine(load_bundle(folder)).evaluate("memory.read", json.dumps(READ))

        assert [row["reason"] for row in answer["deny"]] == ["limit_out_of_bounds"]
