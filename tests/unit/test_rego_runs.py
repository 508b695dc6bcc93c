"""How Rego tests are run: what counts as a test, as passed and as reached."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.archive import FILE_BYTES_MAX
from agent_runtime_ref.policy.rego_tests import RegoReport, run_rego_tests
from tests.tiny_bundle import ABOVE, RULE, tiny_bundle

# Each with a test that has not passed, and why.
NOT_PASSED = {
    "false": ("test_it := false\n", "false"),
    "undefined": ("test_it if input.nothing == 1\n", "not true"),
    "an empty set": ("test_it contains one if some one in []\n", "an empty set or list; a test is true"),
    "a set": ("test_it contains 1\n", "a set or list; a test is true"),
    "a number": ("test_it := 1\n", "not true"),
    "an object of no cases": ("it := {}\n\ntest_it[note] if some note, _ in it\n", "no object `it`"),
    "an error": ('test_it if to_number("x") == 1\n', "memory/tiny/tiny_test.rego:6:"),
    "two values": ("test_it := 1\n\ntest_it := 2\n", "memory/tiny/tiny_test.rego:"),
}


def run(folder: Path, tests: str, rules: str = RULE) -> RegoReport:
    """Return the report of a tiny bundle."""
    return run_rego_tests(tiny_bundle(folder, rules, tests))


class TestResults:
    """What a test is, and when it has passed."""

    @pytest.mark.parametrize("name", NOT_PASSED)
    def test_anything_but_true_has_failed(self, tmp_path: Path, name: str) -> None:
        """A test that is not true has failed, and the report says what it was instead."""
        tests, detail = NOT_PASSED[name]

        report = run(tmp_path, tests)

        assert [one.name for one in report.failed] == ["memory.tiny_test.test_it"]
        assert detail in report.failed[0].detail

    @pytest.mark.parametrize(
        ("tests", "name"),
        [
            ("  test_it if false\n", "test_it"),
            ("default test_it := false\n", "test_it"),
            ("group.test_it if false\n", "group.test_it"),
            (
                'group.it := {"a": 1}\n\ngroup.test_it[note] if {\n\tgroup.it[note] == 2\n}\n',
                "group.test_it[a]",
            ),
            ("test_it.more if true\n\ntest_it.less if false\n", "test_it.less"),
        ],
    )
    def test_however_it_is_written_a_test_runs(self, tmp_path: Path, tests: str, name: str) -> None:
        """A test that is indented, has a default or stands below another name is no less a test."""
        assert [one.name for one in run(tmp_path, tests).failed] == [f"memory.tiny_test.{name}"]

    def test_what_only_looks_like_a_test(self, tmp_path: Path) -> None:
        """A line of a text that begins as a test would is none, and is not told as one that failed."""
        assert run(tmp_path, "text := `\ntest_it if\ntodo_test_it if\n`\n").results == ()
        assert run(tmp_path / "2", "text := `\ntodo_test_it if\n`\n").todo == ()

    def test_cases_are_counted_one_by_one(self, tmp_path: Path) -> None:
        """A test over cases has a result for each; a case that is left out or not true has failed."""
        cases = 'it := {"a": 1, "b": 2, "c": 3}\n\n'
        report = run(
            tmp_path, cases + 'test_it[note] := value == 1 if {\n\tsome note, value in it\n\tnote != "c"\n}\n'
        )

        assert {one.name: one.passed for one in report.results} == {
            "memory.tiny_test.test_it[a]": True,
            "memory.tiny_test.test_it[b]": False,
            "memory.tiny_test.test_it[c]": False,
        }

    def test_cases_below_cases(self, tmp_path: Path) -> None:
        """A case may be an object of cases; it has passed when all of them have."""
        cases = 'it := {"a": {"x": 1, "y": 1}, "b": {"x": 1, "y": 2}}\n\n'
        rule = "test_it[note][part] := value == 1 if some note, parts in it; some part, value in parts\n"
        report = run(
            tmp_path, cases + rule.replace("if some", "if {\n\tsome").replace("; ", "\n\t")[:-1] + "\n}\n"
        )

        assert [one.name for one in report.failed] == ["memory.tiny_test.test_it[b]"]

    def test_a_case_that_only_the_test_knows(self, tmp_path: Path) -> None:
        """A case that is false has failed though the object of cases does not name it."""
        tests = 'it := {"a": 1}\n\ntest_it["a"] := true\n\ntest_it["b"] := false\n'

        assert [one.name for one in run(tmp_path, tests).failed] == ["memory.tiny_test.test_it[b]"]

    def test_what_is_still_to_be_written(self, tmp_path: Path) -> None:
        """`todo_test_...` is told, and is neither run nor a failure."""
        report = run(tmp_path, ABOVE + "todo_test_later if input.nothing == 1\n")

        assert report.todo == ("memory.tiny_test.test_later",)
        assert [(one.name, one.passed) for one in report.results] == [("memory.tiny_test.test_above", True)]

    def test_a_function_is_no_test(self, tmp_path: Path) -> None:
        """A helper that is called `test_...` and takes arguments is not run."""
        report = run(tmp_path, "test_of(limit) := limit\n\n" + ABOVE)

        assert [one.name for one in report.results] == ["memory.tiny_test.test_above"]

    def test_no_tests(self, tmp_path: Path) -> None:
        """A bundle without tests has no results, and nothing of it is reached."""
        report = run(tmp_path, "")

        assert report.results == ()
        assert report.coverage == {"memory.tiny": 0.0}

    @pytest.mark.parametrize(
        ("tests", "detail"),
        [
            ("test_it if {\n", "memory/tiny/tiny_test.rego:"),
            (
                "test_it if nowhere == 1\n",
                "memory/tiny/tiny_test.rego:6:12: use of undefined variable `nowhere`",
            ),
        ],
    )
    def test_tests_that_cannot_be_used(self, tmp_path: Path, tests: str, detail: str) -> None:
        """A test that does not parse or compile makes the bundle unusable, with file, line and column."""
        with pytest.raises(BundleError, match=detail):
            run(tmp_path, tests)


class TestFiles:
    """Which files hold tests, and what becomes of those that cannot be used."""

    @pytest.mark.parametrize(
        ("spoil", "said"),
        [
            (lambda path: path.write_bytes(b"package a_test\n# \xff\n"), "is not UTF-8"),
            (lambda path: path.symlink_to(path.with_name("nowhere")), "No such file"),
            (os.mkfifo, "is no file"),
            (lambda path: path.write_bytes(b" " * (FILE_BYTES_MAX + 1)), "larger than"),
            (lambda path: path.write_text("package memory.tiny\n\ndeny contains 1\n"), "must end in `_test`"),
        ],
    )
    def test_a_file_that_cannot_be_used(
        self, tmp_path: Path, spoil: Callable[[Path], object], said: str
    ) -> None:
        """A file that is no text, is no file or adds rules makes the tests unusable, in a sentence."""
        bundle = tiny_bundle(tmp_path)
        spoil(bundle / "memory/tiny/more_test.rego")

        with pytest.raises(BundleError, match=f"more_test.rego.*{said}"):
            run_rego_tests(bundle)

    @pytest.mark.parametrize("name", [".git/old_test.rego", "memory/.#tiny_test.rego"])
    def test_hidden_files_are_the_editors(self, tmp_path: Path, name: str) -> None:
        """As with rules, what is hidden in a folder is no part of the bundle."""
        bundle = tiny_bundle(tmp_path, tests=ABOVE)
        (bundle / name).parent.mkdir(exist_ok=True)
        (bundle / name).write_text("half of a (", encoding="utf-8")

        assert [one.passed for one in run_rego_tests(bundle).results] == [True]


class TestCoverage:
    """What tests reach."""

    def test_a_line_that_no_test_reaches(self, tmp_path: Path) -> None:
        """The untested line is named, by its place in the file."""
        rules = RULE + '\nnote := "few" if {\n\tinput.limit < 5\n\tinput.kind == "note"\n}\n'

        report = run(
            tmp_path, ABOVE + 'test_note if {\n\tnot tiny.note with input as {"limit": 9}\n}\n', rules
        )

        assert report.missed == {"memory/tiny/tiny.rego": (12, 14)}
        assert report.coverage == {"memory.tiny": 60.0}
        assert [one.rule_id for one in report.rules if not one.reached] == []

    def test_a_rule_that_never_fires(self, tmp_path: Path) -> None:
        """A rule is reached when it answers, not when it is asked."""
        tests = 'test_below if {\n\tfound := tiny.deny with input as {"limit": 5}\n\tfound == set()\n}\n'

        (rule,) = run(tmp_path, tests).rules

        assert (rule.rule_id, rule.line, rule.bodies, rule.fired, rule.reached) == (
            "MEM-T-001",
            8,
            1,
            0,
            False,
        )
        assert rule.missed == (8,)

    def test_a_rule_on_one_line_that_never_fires(self, tmp_path: Path) -> None:
        """Where head and body share a line, it is reached, and the rule is known not to have fired."""
        rules = RULE.replace("if {\n\t", "if ").replace("\n}", "")
        tests = 'test_below if {\n\tfound := tiny.deny with input as {"limit": 5}\n\tfound == set()\n}\n'

        report = run(tmp_path, tests, rules)

        assert report.missed == {}
        assert [one.reached for one in report.rules] == [False]

    def test_one_of_two_bodies(self, tmp_path: Path) -> None:
        """A rule with two definitions says how many of them fired, and where the other is."""
        rules = RULE + "\n" + RULE.replace("> 100", "< 0")

        (rule,) = run(tmp_path, ABOVE, rules).rules

        assert (rule.bodies, rule.fired, rule.missed) == (2, 1, (12,))
