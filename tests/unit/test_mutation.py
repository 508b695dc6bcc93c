"""Changes of a bundle that some Rego test has to notice: which there are, and what comes of them."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.mutation import MutationReport, run_mutants
from agent_runtime_ref.policy.mutation.settings import settings_mutants, settings_read
from agent_runtime_ref.policy.mutation.sources import source_mutants
from agent_runtime_ref.resources import policies_path
from tests.tiny_bundle import ABOVE, HEADER, NO_SURVIVOR, ONE_SURVIVOR, RULE, tiny_bundle

# A module, and what becomes of its parts: (operation, before, after), in any order.
CHANGES: dict[str, tuple[str, set[tuple[str, str, str]]]] = {
    "a comparison with a bound": (
        "x if {\n\tinput.a >= 5\n}\n",
        {
            ("drop rule", "x if { input.a >= 5 }", "x if { false }"),
            ("drop", "input.a >= 5", "true"),
            ("negate", "input.a >= 5", "input.a < 5"),
            ("boundary", "input.a >= 5", "input.a > 5"),
            ("number", "input.a >= 5", "input.a >= 6"),
            ("number", "input.a >= 5", "input.a >= 4"),
        },
    ),
    "texts, of which one is not ASCII": (
        'x if {\n\tinput.a == "é"\n\tinput.b != `"`\n}\n',
        {
            ("drop rule", 'x if { input.a == "é" input.b != `"` }', "x if { false }"),
            ("drop", 'input.a == "é"', "true"),
            ("negate", 'input.a == "é"', 'input.a != "é"'),
            ("drop", 'input.b != `"`', "true"),
            ("negate", 'input.b != `"`', 'input.b == `"`'),
        },
    ),
    "negations and membership": (
        "x if {\n\tnot input.a\n\tinput.b in {1}\n\tinput.c\n}\n",
        {
            ("drop rule", "x if { not input.a input.b in {1} input.c }", "x if { false }"),
            ("drop", "not input.a", "true"),
            ("negate", "not input.a", "input.a"),
            ("drop", "input.b in {1}", "true"),
            ("negate", "input.b in {1}", "not input.b in {1}"),
            ("number", "input.b in {1}", "input.b in {2}"),
            ("number", "input.b in {1}", "input.b in {0}"),
            ("drop", "input.c", "true"),
            ("negate", "input.c", "not input.c"),
        },
    ),
    "a default, and a value on its own": (
        "default x := false\n\ny := 7\n",
        {
            ("drop rule", "default x := false", ""),
            ("boolean", "default x := false", "default x := true"),
            ("drop rule", "y := 7", "y := 7 if { false }"),
            ("number", "y := 7", "y := 8"),
            ("number", "y := 7", "y := 6"),
        },
    ),
    "one line": (
        "x contains 1 if input.a == true\n",
        {
            ("drop rule", "x contains 1 if input.a == true", "x contains 1 if { false }"),
            ("number", "x contains 1", "x contains 2"),
            ("number", "x contains 1", "x contains 0"),
            ("drop", "input.a == true", "true"),
            ("negate", "input.a == true", "input.a != true"),
            ("boolean", "input.a == true", "input.a == false"),
        },
    ),
    "bodies inside an expression": (
        (
            'x if {\n\tys := [y |\n\t\tsome y in input.ys\n\t\ty > "" # why\n\t]\n'
            '\tevery y in ys {\n\t\ty < "m"\n\t}\n}\n'
        ),
        {
            (
                "drop rule",
                'x if { ys := [y | some y in input.ys y > "" # why ] every y in ys { y < "m" } }',
                "x if { false }",
            ),
            ("drop", 'ys := [y | some y in input.ys y > "" # why ]', "true"),
            ("drop", "some y in input.ys", "true"),
            ("drop", 'y > ""', "true"),
            ("negate", 'y > ""', 'y <= ""'),
            ("boundary", 'y > ""', 'y >= ""'),
            ("drop", 'every y in ys { y < "m" }', "true"),
            ("negate", 'every y in ys { y < "m" }', 'not every y in ys { y < "m" }'),
            ("drop", 'y < "m"', "true"),
            ("negate", 'y < "m"', 'y >= "m"'),
            ("boundary", 'y < "m"', 'y <= "m"'),
        },
    ),
    "else": (
        "x := 1 if {\n\tinput.a\n} else := 2 if {\n\tinput.b\n}\n",
        {
            ("drop rule", "x := 1 if { input.a }", "x := 1 if { false }"),
            ("number", "x := 1", "x := 2"),
            ("number", "x := 1", "x := 0"),
            ("drop", "input.a", "true"),
            ("negate", "input.a", "not input.a"),
            ("drop rule", "else := 2 if { input.b }", ""),
            ("drop", "input.b", "true"),
            ("negate", "input.b", "not input.b"),
        },
    ),
}


def changes(text: str) -> list[tuple[str, str, str]]:
    """Return what is changed in a module."""
    return [(one.operation, one.original, one.mutated) for one in source_mutants("a.rego", HEADER + text)]


def mutated(folder: Path, tests: str = NO_SURVIVOR, rules: str = RULE, **options: Any) -> MutationReport:
    """Return what comes of the mutants of a tiny bundle."""
    return run_mutants(tiny_bundle(folder, rules, tests), **options)


class TestModules:
    """Changes of the rules."""

    @pytest.mark.parametrize("name", CHANGES)
    def test_what_is_changed(self, name: str) -> None:
        """Each rule never holds once, each expression is dropped and negated once, each bound moved."""
        text, expected = CHANGES[name]

        found = changes(text)

        assert set(found) == expected
        assert len(found) == len(expected)

    def test_one_place_at_a_time(self) -> None:
        """A mutant differs from its module in one place, and says on which line."""
        for path, text in load_bundle().modules:
            for one in source_mutants(path, text):
                before, after = text.splitlines(), one.content.splitlines()
                line = next(
                    n for n, pair in enumerate(zip(before, after, strict=False), 1) if pair[0] != pair[1]
                )
                assert (one.content == text, one.file, line >= one.line) == (False, path, True)

    def test_rules_are_named_by_their_id(self) -> None:
        """A rule is known by the id it answers with and the number of its body, a helper by its name."""
        text = HEADER + RULE + RULE.replace("> 100", "< 0") + "\nhelper if input.a\n"

        assert [one.rule for one in source_mutants("a.rego", text) if one.operation == "drop rule"] == [
            "MEM-T-001#1",
            "MEM-T-001#2",
            "helper#1",
        ]

    def test_a_module_that_does_not_parse(self) -> None:
        """What is no Rego is refused with its place."""
        with pytest.raises(BundleError, match=r"a\.rego:1:"):
            list(source_mutants("a.rego", "package {"))


class TestSettings:
    """Changes of thresholds, switches and lists."""

    def of(self, *names: str) -> set[tuple[str, str, str, str]]:
        """Return the changes of the bundled settings that a rule reads which names some of them."""
        code = "".join(f"rule_{name} if settings.{name}\n" for name in names)
        bundle = load_bundle()
        found = settings_mutants(bundle.data_json, [("a.rego", HEADER + code)], policies_path())
        return {
            (one.rule.removeprefix("settings."), one.operation, one.original, one.mutated) for one in found
        }

    def test_numbers_lists_and_levels(self) -> None:
        """Numbers move by one both ways, entries of lists go one by one, levels of trust move by one."""
        assert self.of("provenance_classes", "unproven_trust_max") == {
            ("provenance_classes.0", "entry", '"long_term"', "removed"),
            ("provenance_classes.1", "entry", '"profile"', "removed"),
            ("unproven_trust_max", "level", '"low"', '"medium"'),
        }
        assert {change[0] for change in self.of("limits")} >= {"limits.query_min", "limits.query_max"}
        assert ("limits.query_max", "number", "100", "99") in self.of("limits")
        assert ("limits.query_max", "number", "100", "101") in self.of("limits")

    def test_booleans_are_flipped_or_their_entry_goes(self) -> None:
        """Where the schema has no place for the other value, the name is taken out of the table."""
        assert self.of("operator_roles") == {("operator_roles.operator", "entry", "true", "removed")}
        assert ("classes.profile.durable", "boolean", "true", "false") in self.of("classes")

    def test_what_the_loader_refuses_is_no_mutant(self) -> None:
        """Ranks are fixed by the schema, and a smallest limit of zero is none."""
        assert self.of("trust_ranks") == set()
        assert ("limits.query_min", "number", "1", "0") not in self.of("limits")

    @pytest.mark.parametrize(
        ("code", "read"),
        [
            ("x if settings.limits.query_max > 1\n", {"limits"}),
            ("x if {\n\tall := settings\n\tall.sources\n}\n", {"sources"}),
            ("x if data.memory.settings.purposes\n", {"purposes"}),
            ("x if input.settings.purposes\n", set()),
            ('x if data["memory"].settings[`purposes`]\n', {"purposes"}),
            ("import data.memory as all\nx if all.settings.sources\n", {"sources"}),
            ("import data.memory\nx if {\n\tone := memory\n\tone.settings.sources\n}\n", {"sources"}),
            ("x if input.data.memory.settings.purposes\n", set()),
            ("# settings.limits\nx := `settings.limits`\n", set()),
        ],
    )
    def test_which_settings_rules_read(self, code: str, read: set[str]) -> None:
        """Only what the rules name is changed; comments, texts and the input do not count."""
        assert settings_read(load_bundle().settings, [("a.rego", HEADER + code)]) == read

    @pytest.mark.parametrize(
        "code",
        [
            "x if settings[input.name]\n",
            'x := object.get(settings, "limits", {})\n',
            "x if data.memory[input.name].limits\n",
            "x if data[input.name]\n",
        ],
    )
    def test_a_computed_name_may_be_any(self, code: str) -> None:
        """A rule that takes settings by a name it computes, or all at once, reads all of them."""
        settings = load_bundle().settings

        assert settings_read(settings, [("a.rego", HEADER + code)]) == set(settings)

    def test_each_has_its_line(self) -> None:
        """A mutant of the settings names the file and the line where the value stands."""
        bundle = load_bundle()
        lines = (policies_path() / "memory/settings/data.json").read_text(encoding="utf-8").splitlines()

        for one in settings_mutants(bundle.data_json, bundle.modules, policies_path()):
            assert one.file == "memory/settings/data.json"
            assert one.original in lines[one.line - 1]


class TestRuns:
    """What the tests notice."""

    def test_good_tests_notice_everything(self, tmp_path: Path) -> None:
        """With a test on either side of each bound no change survives."""
        report = mutated(tmp_path)

        assert (report.tried, report.invalid, report.survived) == (6, 0, ())

    def test_a_survivor_is_named(self, tmp_path: Path) -> None:
        """What no test notices is told with its place, its rule and what was changed."""
        (survivor,) = mutated(tmp_path, ONE_SURVIVOR).survived

        assert survivor.sentence == (
            "memory/tiny/tiny.rego:9: MEM-T-001#1: number: `input.limit > 100` -> `input.limit > 101`"
        )
        assert survivor.rule_id == "MEM-T-001"

    def test_a_threshold_in_the_settings(self, tmp_path: Path) -> None:
        """A threshold that lies in the settings is moved there."""
        rules = RULE.replace("100", "settings.limits.query_max")

        report = mutated(tmp_path, ONE_SURVIVOR, rules)

        assert [(one.rule, one.mutated) for one in report.survived] == [("settings.limits.query_max", "101")]
        assert mutated(tmp_path / "better", NO_SURVIVOR, rules).survived == ()

    def test_an_error_is_noticed(self, tmp_path: Path) -> None:
        """A mutant on which a test fails with an error has been noticed."""
        rules = (
            'deny contains {"rule_id": "MEM-T-001"} if {\n\tinput.limit < ""\n\tinput.limit + 1 > 101\n}\n'
        )
        text = 'test_text if {\n\tfound := tiny.deny with input as {"limit": "x"}\n\tfound == set()\n}\n'

        report = mutated(tmp_path, NO_SURVIVOR + text, rules)

        assert "drop" not in {one.operation for one in report.survived}

    def test_what_does_not_compile_is_not_counted(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        """Without its `some` a rule uses what nothing binds; that is not tried, and prints nothing."""
        rules = RULE.replace("input.limit > 100", "some limit in [input.limit]\n\tlimit > 100")

        report = mutated(tmp_path, NO_SURVIVOR, rules)

        assert (report.tried, report.invalid, report.survived) == (6, 1, ())
        assert capfd.readouterr() == ("", "")

    def test_only_tests_that_reach_the_package_are_asked(self, tmp_path: Path) -> None:
        """The test of another package notices a change that reaches it through an import."""
        bundle = tiny_bundle(tmp_path, RULE, "")
        imports = "import data.memory.{}\nimport future.keywords.not\nimport rego.v1\n\n"
        other = "package memory.other\n\n" + imports.format("tiny") + "refused if count(tiny.deny) > 0\n"
        test = (
            "package memory.other_test\n\n"
            + imports.format("other")
            + 'test_refused if other.refused with input as {"limit": 101}\n\n'
            'test_not if not other.refused with input as {"limit": 100}\n'
        )
        (bundle / "memory/tiny/other.rego").write_text(other, encoding="utf-8")
        (bundle / "memory/tiny/other_test.rego").write_text(test, encoding="utf-8")

        report = run_mutants(bundle)

        assert [one.file for one in report.survived if one.file.endswith("tiny.rego")] == []

    def test_a_package_that_is_named_in_brackets_is_there(self, tmp_path: Path) -> None:
        """However a rule or a test names a package, its mutants are judged with that package in place."""
        rules = RULE.replace(
            "input.limit > 100", 'input.limit > data["memory"]["other"].most\n\tinput.zone != "x"'
        )
        tests = ABOVE.replace("tiny.deny", 'data["memory"]["tiny"].deny').replace("102", '102, "zone": "y"')
        bundle = tiny_bundle(tmp_path, rules, tests)
        (bundle / "memory/other").mkdir()
        (bundle / "memory/other/other.rego").write_text(
            "package memory.other\n\nimport rego.v1\n\nmost := 100\n", encoding="utf-8"
        )

        survived = {(one.rule, one.operation, one.original) for one in run_mutants(bundle).survived}

        assert survived == {
            ("most#1", "number", "most := 100"),
            ("MEM-T-001#1", "drop", 'input.limit > data["memory"]["other"].most'),
            ("MEM-T-001#1", "boundary", 'input.limit > data["memory"]["other"].most'),
            ("MEM-T-001#1", "drop", 'input.zone != "x"'),
        }

    def test_several_processes_report_the_same(self, tmp_path: Path) -> None:
        """Shared among processes, the report is the one of a single one, and progress reaches the end."""
        rules = "".join(RULE.replace("T-001", f"T-{n:03}").replace("100", str(n)) for n in range(2, 40))
        test = 'test_all if {\n\tfound := tiny.deny with input as {"limit": 20}\n\tcount(found) == 18\n}\n'
        bundle = tiny_bundle(tmp_path, rules, test)
        seen: list[tuple[int, int]] = []

        shared = run_mutants(bundle, workers=2, progress=lambda done, total: seen.append((done, total)))

        assert shared == run_mutants(bundle)
        assert len(shared.survived) > 10
        assert seen[-1] == (shared.tried + shared.invalid,) * 2

    def test_processes_end_with_their_parent(self, tmp_path: Path) -> None:
        """A run that is killed leaves no process behind that waits for more work."""
        rules = "".join(RULE.replace("T-001", f"T-{n:03}").replace("100", str(n)) for n in range(2, 40))
        bundle = tiny_bundle(tmp_path, rules, "test_nothing if true\n")
        script = tmp_path / "run.py"
        script.write_text(KILLED.format(bundle=str(bundle)), encoding="utf-8")

        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        pids = [int(word) for word in done.stdout.split()]

        assert (done.returncode, len(pids)) == (-signal.SIGKILL, 2)
        deadline = time.monotonic() + 30
        while any(_alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert [pid for pid in pids if _alive(pid)] == []


KILLED = """
import multiprocessing, os, signal
from agent_runtime_ref.policy.mutation import run_mutants

def killed(done, total):
    print(*(child.pid for child in multiprocessing.active_children()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    run_mutants({bundle!r}, workers=2, progress=killed)
"""


def _alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
