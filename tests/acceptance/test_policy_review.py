"""`policy review`: what a reviewer who reads no code is told, and that the policies themselves said it."""

from __future__ import annotations

import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import review as review_package
from agent_runtime_ref.policy import load_bundle
from agent_runtime_ref.policy.controls import read_controls
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.review import Review, document_of, html_text, markdown_text, review_bundle
from tests.acceptance.command import Command
from tests.acceptance.reviews import FRIDAY, SMALL_RULES
from tests.acceptance.reviews import found as _found
from tests.acceptance.reviews import reviewed as _reviewed
from tests.acceptance.reviews import rules as _rules
from tests.acceptance.reviews import texts as _texts
from tests.bundles import copied, small, with_rule, with_settings


@pytest.fixture(scope="module")
def made() -> Review:
    """The review of the bundled policies, made once."""
    return review_bundle()


@pytest.fixture(scope="module")
def bundled(made: Review) -> dict[str, Any]:
    """The same as a document."""
    return document_of(made)


class TestBundled:
    """The review of the policies that come with the package."""

    def test_it_has_the_documented_keys(self, bundled: dict[str, Any]) -> None:
        """JSON holds rules, controls and findings, and each rule what the contract names."""
        keys = {"id", "title", "severity", "controls", "settings", "tests", "admits", "keeps_out"}

        assert {"rules", "controls", "findings"} <= set(bundled)
        assert all(keys <= set(rule) for rule in bundled["rules"])

    def test_it_has_every_rule_and_control(self, bundled: dict[str, Any]) -> None:
        """No rule of the bundle and no control of its table is left out."""
        controls = read_controls(policies_path())
        assert isinstance(controls, tuple)

        assert set(_rules(bundled)) == {rule.rule_id for rule in load_bundle().rules}
        assert [one["id"] for one in bundled["controls"]] == [one.control_id for one in controls]

    def test_every_rule_is_shown_at_work(self, bundled: dict[str, Any]) -> None:
        """Each rule has something that it lets in, something that it keeps out by name, and passing tests."""
        silent = [
            rule["id"]
            for rule in bundled["rules"]
            if not (rule["admits"] and rule["keeps_out"])
            or any(rule["id"] not in one["rules"] for one in rule["keeps_out"])
            or not any(test["passed"] for test in rule["tests"])
        ]

        assert silent == []

    def test_every_step_is_shown(self, bundled: dict[str, Any]) -> None:
        """Whatever the policies decide on is let in somewhere and kept out elsewhere."""
        steps = {"search", "inspection", "write", "removal", "merging", "release", "rejection", "quarantine"}

        for side in ("admits", "keeps_out"):
            assert {one["situation"] for rule in bundled["rules"] for one in rule[side]} == steps

    def test_nothing_is_wrong_with_it(self, bundled: dict[str, Any]) -> None:
        """The bundled policies have no finding."""
        assert bundled["findings"] == []

    def test_settings_are_those_in_force(self, bundled: dict[str, Any]) -> None:
        """A rule shows the settings that it reads, under whatever names, with their present values."""
        settings = load_bundle().settings
        durable = {name: {"durable": one["durable"]} for name, one in settings["classes"].items()}

        assert _rules(bundled)["MEM-W-111"]["settings"] == {
            "limits": {"size_bytes_max": settings["limits"]["size_bytes_max"]}
        }
        assert _rules(bundled)["MEM-R-205"]["settings"] == {"age_limits": settings["age_limits"]}
        assert _rules(bundled)["MEM-W-107"]["settings"] == {"classes": durable}

    @pytest.mark.parametrize(
        ("rule_id", "inside", "outside"),
        [
            ("MEM-W-111", "a size of 65,536 bytes", "a size of 65,537 bytes"),
            ("MEM-W-108", "confidence 0.5 ", "confidence 0.499999"),
            ("MEM-R-205", "an age of 730 days ", "an age of 730 days and 1 second"),
            ("MEM-R-203", "expires in 1 second", "expires at this very instant"),
            ("MEM-R-204", "trust medium", "trust low"),
        ],
    )
    def test_examples_stand_on_both_sides_of_a_threshold(
        self, bundled: dict[str, Any], rule_id: str, inside: str, outside: str
    ) -> None:
        """What is shown of a bound is the last value inside and the first outside."""
        rule = _rules(bundled)[rule_id]

        assert inside in rule["admits"][0]["text"]
        assert outside in rule["keeps_out"][0]["text"]

    def test_the_overview_has_the_order_of_the_parts(self, made: Review) -> None:
        """Rules stand in the overview as they come in the contents and below, in each form."""
        text, page = markdown_text(made), html_text(made)
        parts = re.findall(r"^### (\S+)$", text, re.MULTILINE)
        overview = page[page.index('<section id="overview"') : page.index('<section id="reading"')]
        contents = page[page.index("<nav") : page.index("</nav>")]

        assert len(parts) == len(made.rules)
        assert re.findall(r"^\| `(MEM-[^`]+)` \|", text, re.MULTILINE) == parts
        for section in (overview, contents):
            assert re.findall(r'href="#rule-([^"]+)"', section) == parts

    def test_a_review_is_about_what_is_in_quarantine(self, made: Review) -> None:
        """Rules about releases look at a record that waits, and who counts is told alike for both steps."""
        text = markdown_text(made)
        part = text[text.index("## Rules for reviewing") :]

        assert "looks at: each record to be kept" not in part
        assert "looks at: the record in quarantine: status" in part
        assert "› release: agent, principal, subject" in part
        assert "› reject: not agent, not principal, not subject" in part

    def test_words_stay_words(self, bundled: dict[str, Any]) -> None:
        """No example makes a number or a yes of a word: it would say nothing to a reader."""
        changes = [
            change
            for rule in bundled["rules"]
            for side in ("admits", "keeps_out")
            for example in rule[side]
            for change in example["changes"]
            if isinstance(change["was"], str) and "is" in change
        ]

        assert len(changes) > 50
        assert {type(one["is"]) for one in changes} <= {str, type(None)}

    def test_what_a_control_asks_for(self, made: Review) -> None:
        """The Markdown form has it beside the title, as the page has."""
        text = markdown_text(made)

        assert "| control | framework | title | what it asks for | rules |" in text
        assert all(one.evidence.split(",")[0] in text for one in made.controls if one.evidence)

    def test_the_other_formats_say_the_same(self, made: Review, bundled: dict[str, Any]) -> None:
        """Every rule, control and example of the JSON form stands in the Markdown form, too."""
        text = markdown_text(made)
        examples = [
            one for rule in bundled["rules"] for side in ("admits", "keeps_out") for one in rule[side]
        ]

        assert [one for one in _rules(bundled) if f"\n### {one}\n" not in text] == []
        assert [one["id"] for one in bundled["controls"] if f"| `{one['id']}` |" not in text] == []
        assert len(re.findall(r"^- .* — ", text, re.MULTILINE)) == len(examples)


class TestComputed:
    """Examples are what the policies answer, not what somebody wrote."""

    def test_a_threshold_moves_the_examples(
        self, command: Command, tmp_path: Path, bundled: dict[str, Any]
    ) -> None:
        """Another bound in a copied bundle moves the examples of its rule to that bound, and no others."""
        policies = copied(tmp_path)
        with_settings(policies, lambda settings: settings["limits"].update(size_bytes_max=1_000))

        now = _rules(_reviewed(command, policies).document)

        was = _rules(bundled)
        assert now["MEM-W-111"]["admits"][0]["changes"][0]["is"] == 1_000
        assert now["MEM-W-111"]["keeps_out"][0]["changes"][0]["is"] == 1_001
        assert now["MEM-W-108"]["keeps_out"] == was["MEM-W-108"]["keeps_out"]

    def test_a_floor_moves_the_examples(self, command: Command, tmp_path: Path) -> None:
        """With a higher floor the very seed that was let in is kept out."""
        policies = small(tmp_path)
        was = _rules(_reviewed(command, policies).document)["MEM-R-204"]
        floors = {"low": ["short_term"], "medium": ["profile"], "high": ["long_term"]}
        with_settings(policies, lambda settings: settings.update(trust_floors=floors))

        now = _rules(_reviewed(command, policies).document)["MEM-R-204"]

        assert "mem-001 with trust low instead of medium: kept out: trust_below_minimum" in _texts(
            was["keeps_out"]
        )
        assert "mem-002 as it is: let in" in _texts(was["admits"])
        assert "mem-002 as it is: kept out: trust_below_minimum" in _texts(now["keeps_out"])

    def test_what_is_read_has_the_trust_that_was_given(self, command: Command, tmp_path: Path) -> None:
        """Seeds are read with the trust that this bundle's own write policy assigns."""
        policies = small(tmp_path)
        path = policies / "memory/write/write.rego"
        path.write_text(path.read_text(encoding="utf-8").replace('"medium"', '"low"'), encoding="utf-8")

        document = _reviewed(command, policies).document

        assert {seed["trust"] for seed in document["seeds"]} == {"low"}
        assert "mem-001 as it is: kept out: trust_below_minimum" in _texts(
            _rules(document)["MEM-R-204"]["keeps_out"]
        )

    def test_a_rule_that_never_holds_has_no_example(self, command: Command, tmp_path: Path) -> None:
        """Where METADATA promises what no answer shows, there is no example, and a finding says so."""
        policies = small(tmp_path)
        path = policies / "memory/write/write.rego"
        text = path.read_text(encoding="utf-8")
        never = "candidate.size_bytes == {}"
        path.write_text(
            text.replace("not candidate.size_bytes <= settings.limits.size_bytes_max", never),
            encoding="utf-8",
        )
        answer = _reviewed(command, policies)

        # An empty candidate is let in now, which no policy may do: the bundle is not reviewed at all.
        assert (answer.code, answer.out) == (2, "")

        with_rule(policies, FRIDAY.replace('"session_state"', "{}"))
        path.write_text(text, encoding="utf-8")
        answer = _reviewed(command, policies)
        assert _rules(answer.document)["MEM-W-990"]["keeps_out"] == []
        assert ("no-example", "low") in _found(answer)

    def test_a_rule_that_only_two_changes_show(self, command: Command, tmp_path: Path) -> None:
        """A rule of two conditions is shown with the changes that fulfil both."""
        policies = small(tmp_path)
        both = '\tcandidate.source == "external_tool"\n\tcandidate.memory_class == "short_term"\n'
        rule = FRIDAY.replace('\tcandidate.source == "session_state"\n', both)
        with_rule(policies, rule.replace("[source]", "[source, memory_class]"))

        example = _rules(_reviewed(command, policies).document)["MEM-W-990"]["keeps_out"][0]

        assert example["rules"] == ["MEM-W-990"]
        assert {"external_tool", "short_term"} >= {one["is"] for one in example["changes"]}


class TestPlaces:
    """Folders and archives, and what is neither."""

    @pytest.mark.parametrize("style", ["html", "markdown", "json"])
    def test_same_bundle_same_bytes(
        self, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str
    ) -> None:
        """Neither the place of a bundle nor the environment shows in a report; digest and revision do."""
        policies = small(tmp_path)
        first = command("policy", "review", "--policies", policies, "--format", style)
        monkeypatch.setenv("AGENT_RUNTIME_STORE", "memory:")
        moved = policies.rename(tmp_path / "moved")
        second = command("policy", "review", "--policies", moved, "--format", style)

        assert (first.out, first.code) == (second.out, second.code)
        assert str(tmp_path) not in first.out
        assert load_bundle(moved).digest in first.out
        assert "small-1" in first.out

    def test_an_archive(self, command: Command, tmp_path: Path) -> None:
        """An archive has the same rules and examples; that it brings no tests is an error that says so."""
        policies = small(tmp_path)
        folder = _reviewed(command, policies).document
        with tarfile.open(tmp_path / "bundle.tar.gz", "w:gz") as archive:
            for path in sorted(policies.rglob("*")):
                if path.is_file() and not path.name.endswith("_test.rego") and path.suffix != ".yaml":
                    archive.add(path, path.relative_to(policies).as_posix())

        answer = _reviewed(command, tmp_path / "bundle.tar.gz")

        assert _found(answer) == [("no-tests", "error"), ("controls-missing", "warning")]
        assert answer.code == 1
        assert answer.document["bundle"] == folder["bundle"]
        for rule_id in SMALL_RULES:
            was, now = _rules(folder)[rule_id], _rules(answer.document)[rule_id]
            assert (now["admits"], now["keeps_out"]) == (was["admits"], was["keeps_out"])

    @pytest.mark.parametrize("name", ["missing/review.html", "."])
    def test_a_report_that_cannot_be_written(
        self, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        """That is said before the review is made, which takes a while."""
        monkeypatch.setattr(review_package, "review_bundle", lambda *_, **__: pytest.fail("it was made"))
        monkeypatch.chdir(tmp_path)
        answer = command("policy", "review", "-o", name)

        assert (answer.code, answer.out) == (2, "")
        assert f"report not written to `{name}`" in answer.err

    def test_to_a_file(self, command: Command, tmp_path: Path) -> None:
        """`-o` writes the report and leaves standard output alone; HTML is what comes without `--format`."""
        answer = command("policy", "review", "--policies", small(tmp_path), "-o", tmp_path / "review.html")

        assert (answer.code, answer.out) == (0, "")
        assert (tmp_path / "review.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>\n")

    @pytest.mark.parametrize(
        ("words", "said"),
        [
            (("--policies", "nowhere"), "nowhere"),
            (("-o", "nowhere/review.html"), "name another file"),
        ],
    )
    def test_bad_places(self, command: Command, words: tuple[str, ...], said: str) -> None:
        """A place that is not there ends in 2 with a sentence that names it."""
        answer = command("policy", "review", *words)

        assert (answer.code, answer.out) == (2, "")
        assert said in answer.err

    def test_rego_that_does_not_parse(self, command: Command, tmp_path: Path) -> None:
        """Broken Rego ends in 2 with file and line."""
        policies = small(tmp_path)
        with_rule(policies, "deny contains {\n")

        answer = _reviewed(command, policies)

        assert answer.code == 2
        assert re.search(r"own\.rego:\d+:\d+", answer.err)
