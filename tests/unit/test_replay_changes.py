"""Changes that a replay found: in their order, in shares, and with the worst first."""

from __future__ import annotations

from agent_runtime_ref.replay.changes import KINDS, Change, Changes
from agent_runtime_ref.replay.formats.escapes import cell, plain


def _change(number: int, kind: str = "newly_hidden", **other: object) -> Change:
    base = {
        "kind": kind,
        "decision_id": f"dec-{number}",
        "record_id": f"mem-{number}",
        "tenant_id": f"tenant-{number % 30:02d}",
        "principal_id": f"user-{number}",
        "was": "returned",
        "now": "kept_out",
        "rule_ids": (f"R-{number % 3}",),
        "reasons": ("why",),
    }
    return Change(**{**base, **other})  # type: ignore[arg-type]


def test_changes_come_back_in_their_order() -> None:
    """However many there are, they are read as they were added, whole."""
    added = [_change(number) for number in range(2_500)]
    with Changes() as changes:
        for one in added:
            changes.add(one)
        assert list(changes) == added
        assert list(changes) == added
        assert len(changes) == 2_500


def test_shares_name_the_most_and_sum_up_the_rest() -> None:
    """Who has the most comes first; the others stand together and say how many they are."""
    with Changes() as changes:
        for number in range(90):
            changes.add(_change(number))
        changes.add(_change(0, "newly_exposed", tenant_id="tenant-07"))
        shares = changes.by_tenant(2)
        assert [(one.name, one.names, sum(one.counts.values())) for one in shares] == [
            ("tenant-07", 1, 4),
            ("tenant-00", 1, 3),
            (None, 28, 84),
        ]
        assert sum(sum(one.counts.values()) for one in changes.by_principal(5)) == 91
        assert [one.name for one in changes.by_rule(5)] == ["R-0", "R-1", "R-2"]
        assert set(shares[0].counts) == set(KINDS)


def test_the_worst_come_first() -> None:
    """An exposure that was found last stands before everything else."""
    with Changes() as changes:
        for number in range(5):
            changes.add(_change(number))
        changes.add(_change(9, "newly_exposed"))
        assert [one.decision_id for one in changes.worst_first(2)] == ["dec-9", "dec-0"]


def test_a_record_is_named_after_its_decision() -> None:
    """The log tells right after a decision which record it led to; a later change is not renamed."""
    with Changes() as changes:
        changes.add(_change(1, record_id=None))
        changes.name("dec-1", "mem-new")
        changes.name("dec-other", "mem-wrong")
        assert [one.record_id for one in changes] == ["mem-new"]


def test_words_of_others_stay_words() -> None:
    """What a page or a terminal would act on is escaped, and long words are cut."""
    assert cell("a|b <x> @c [d](e) `f` *g*") == (r"a\|b &lt;x&gt; &#64;c \[d\]\(e\) \`f\` \*g\*")
    assert cell(None) == ""
    assert len(cell("x" * 1_000)) == 200
    assert plain("a\nb\u202e\U000e0041") == "a\\u000ab\\u202e\\U000e0041"
