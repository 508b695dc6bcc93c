"""What a log says was asked and decided, in the shape in which it can be asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.enforcement.hindsight import Outcome, write_outcomes
from agent_runtime_ref.enforcement.rows import Rows
from agent_runtime_ref.enforcement.ruling import read_refusals
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.telemetry.lines import INPUT_VERSION, READERS_ORDER, SCORE_COLUMN
from agent_runtime_ref.telemetry.reader import LoggedDecision

__all__ = ["DAMAGES", "NotReplayableError", "ReadQuestion", "WriteQuestion", "damaged", "question_of"]

Row = Mapping[str, Any]
_PSEUDONYM = "subject:"
# How an entry shows that it is not what it should be; checking each record first costs a third more.
DAMAGES = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
# What the gate itself decided before it asked any policy: every policy leaves it as it is.
_OF_THE_GATE = frozenset({"text_not_searchable"})
# Version of an input -> what makes it one of the next version. Version 1 is the first.
_LIFTS: Mapping[int, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {}


class NotReplayableError(Exception):
    """A decision cannot be asked again; the argument says why in one word, by which it is counted."""


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """A read: what was asked, the records that the log names for it, and what became of each."""

    document: Mapping[str, Any]  # the policy's input
    denied: tuple[Row, ...]  # empty: the read was answered
    records: Sequence[Mapping[str, Any]] = ()  # in rank order
    returned: frozenset[int] = frozenset()
    kept_out: Mapping[int, tuple[Row, ...]] = field(default_factory=dict)  # rule_id may be missing in a row
    ranked: bool = True  # False: the order between returned and kept out is not in the log
    considered: int = 0
    revision: int | None = None  # of the store, at the snapshot
    whole: bool = True  # every record that was returned is among them
    rebuilt: bool = False  # a store gave the records, and the log only says of some why they were kept out
    of_gate: bool = False  # the policies were not asked


@dataclass(frozen=True, slots=True)
class WriteQuestion:
    """A write, a removal or a review: what was asked, and what became of each candidate."""

    document: Mapping[str, Any]
    outcomes: Sequence[Outcome]
    together: bool = False  # one outcome for all candidates: none is carried out where one is refused


def question_of(decision: LoggedDecision) -> ReadQuestion | WriteQuestion:
    """Return the question behind a logged decision.

    Raises:
        NotReplayableError: there is none, or the log does not hold all of it.
        DocumentUnreadableError: the entry is damaged.
    """
    gate = decision.gate
    if gate is None or not decision.path.endswith("/decision"):
        raise NotReplayableError("other_decision")
    if any(pointer.startswith("/input") for pointer in (*decision.erased, *decision.masked)):
        raise NotReplayableError("input_masked")
    if not decision.result:
        raise NotReplayableError("result_missing")
    try:
        document = _lifted(decision)
        if decision.own:
            return _own_read(decision, document) if gate == "read" else _own_write(decision, document)
        return _foreign_read(decision, document) if gate == "read" else _foreign_write(decision, document)
    except DAMAGES as error:
        raise damaged(decision, type(error).__name__) from error


def _lifted(decision: LoggedDecision) -> Mapping[str, Any]:
    """Return the input as this version asks; an OPA server's log does not say a version."""
    document = decision.input
    version = decision.document["input_version"] if decision.own else INPUT_VERSION
    if type(version) is not int or version < 1:
        raise damaged(decision, "input_version")
    if version > INPUT_VERSION:
        raise NotReplayableError("input_version_newer")
    for step in range(version, INPUT_VERSION):
        document = _LIFTS[step](document)
    return document


def _own_read(decision: LoggedDecision, document: Mapping[str, Any]) -> ReadQuestion:
    result, considered = decision.result, decision.considered
    rows = tuple(result["deny"])
    _refuse_failures(rows)
    if result["allow"] is not True:
        of_gate = any(row["reason"] in _OF_THE_GATE for row in rows)
        return ReadQuestion(
            document, rows or ({"rule_id": "GATE", "reason": "not_permitted"},), of_gate=of_gate
        )
    if considered is None:
        raise NotReplayableError("records_missing")
    return _answered_read(document, considered)


def _answered_read(document: Mapping[str, Any], considered: Mapping[str, Any]) -> ReadQuestion:
    """Return the question of a read that was answered, with the records that its line names."""
    columns = considered["columns"]
    scored = columns[-1] == SCORE_COLUMN
    names = columns[:-1] if scored else columns
    found: list[Any] = considered["returned"]
    kept_out: list[Any] = considered["kept_out"]
    # Whoever chose among what was admitted, or ordered it anew, may have passed over what ranks higher.
    by_reader = considered.get("order") == READERS_ORDER
    ranked = not by_reader and (scored or not document["query"]["has_text"])
    returned = frozenset(range(len(found)))
    why: dict[int, tuple[Row, ...]] = {}
    if kept_out:
        found, places = _together(found, kept_out, _order(columns, scored) if ranked else None)
        returned = frozenset(places[: len(returned)])
        kept_places = places[len(returned) :]
        why = {place: ({"reason": row[-1]},) for place, row in zip(kept_places, kept_out, strict=True)}
    records = Rows(names, found)
    return ReadQuestion(
        document=_comparable(document, records),
        denied=(),
        records=records,
        returned=returned,
        kept_out=why,
        ranked=ranked,
        considered=considered["considered"],
        revision=considered["store_revision"],
        whole=not by_reader and _is_whole(considered, document["query"]["limit"]),
    )


def _is_whole(considered: Mapping[str, Any], limit: int) -> bool:
    """Tell whether a line names all that was returned: a long one is cut, and a survey names nothing."""
    admitted = considered["considered"] - sum(considered["exclusions"].values())
    return bool(len(considered["returned"]) >= min(limit, admitted))


def _together(
    returned: list[Any], kept_out: list[Any], order: Callable[[Any], Any] | None
) -> tuple[list[Any], list[int]]:
    """Return all rows in rank order, and where each of those that were handed in has got to."""
    rows = [*returned, *kept_out]
    if order is None:
        return rows, list(range(len(rows)))
    ranks = sorted(range(len(rows)), key=lambda index: order(rows[index]))
    places = [0] * len(rows)
    for place, index in enumerate(ranks):
        places[index] = place
    return [rows[index] for index in ranks], places


def _order(columns: Sequence[str], scored: bool) -> Callable[[Any], Any]:
    """Return the key of the order in which answers stand."""
    score = len(columns) - 1 if scored else None
    trust, created, record_id, tenant = (
        columns.index(name) for name in ("trust_rank", "created_ns", "record_id", "tenant_id")
    )

    def key(row: Any) -> tuple[int, int, int, str, str]:
        return (
            -(row[score] or 0) if score is not None else 0,
            -row[trust],
            -row[created],
            row[record_id],
            row[tenant],
        )

    return key


def _comparable(document: Mapping[str, Any], records: Rows) -> Mapping[str, Any]:
    """Return the input with names that the log masks on one side only made equal on both.

    A record about somebody has a pseudonym for a key, while a query may name the key itself, or the other
    way round; a tenant that is called as a subject is masked in the query alone. Each of these records was
    considered, so it was selected by its key and lay in its tenant.
    """
    query = document["query"]
    keys, tenant_id = query["keys"], query["tenant_id"]
    changed: dict[str, Any] = {}
    if keys:
        masked = any(key.startswith(_PSEUDONYM) for key in keys)
        (place,) = records.places(["key"])
        found = {row[place] for row in records.values if row[place] is not None}
        alike = {key for key in found.difference(keys) if masked or key.startswith(_PSEUDONYM)}
        if alike:
            changed["keys"] = [*keys, *sorted(alike)]
    if tenant_id is not None and tenant_id.startswith(_PSEUDONYM):
        (place,) = records.places(["tenant_id"])
        for row in records.values:
            row[place] = tenant_id
    return {**document, "query": {**query, **changed}} if changed else document


def _own_write(decision: LoggedDecision, document: Mapping[str, Any]) -> WriteQuestion:
    result = decision.result
    rows = tuple(result["deny"])
    _refuse_failures(rows)
    effect = result["effect"]
    if effect not in ("allow", "deny", "quarantine"):
        raise damaged(decision, "effect")
    # Records that go in one step are refused in one line; what is let go has a line each.
    together = document["operation"] == "delete" and effect == "deny" and len(document["candidates"]) > 1
    if len(document["candidates"]) != 1 and not together:
        raise damaged(decision, "a write is about one candidate")
    fired = tuple(result["quarantine"]) if effect == "quarantine" else rows
    return WriteQuestion(document, [Outcome(effect, fired, result.get("assign"))], together)


def _refuse_failures(rows: Sequence[Row]) -> None:
    """Leave out what was decided for want of an answer: nothing says what the policies would have said."""
    if any(row["rule_id"] == "ENGINE" for row in rows):
        raise NotReplayableError("engine_failure")


def _foreign_read(decision: LoggedDecision, document: Mapping[str, Any]) -> ReadQuestion:
    """Return the question of one call to an OPA server: about a plan, or about the candidates in it."""
    result = decision.result
    denied = read_refusals(result)
    records = document["candidates"]
    if denied or not records:
        return ReadQuestion(document, denied, records)
    admitted = sorted(result["admitted"])[: document["query"]["limit"]]
    fired: dict[int, list[Row]] = {}
    for row in result["excluded"]:
        fired.setdefault(row["index"], []).append(row)
    return ReadQuestion(
        document=document,
        denied=(),
        records=records,
        returned=frozenset(admitted),
        kept_out={index: tuple(rows) for index, rows in fired.items()},
        considered=len(records),
    )


def _foreign_write(decision: LoggedDecision, document: Mapping[str, Any]) -> WriteQuestion:
    return WriteQuestion(document, write_outcomes(decision.result, document))


def damaged(decision: LoggedDecision, what: str) -> DocumentUnreadableError:
    """Return the error that says which entry of the log is not what it should be."""
    return DocumentUnreadableError(
        f"decision not readable: {what}", source=decision.source, line=decision.line
    )
