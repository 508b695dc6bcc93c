"""Numbers for a dashboard, through the OpenTelemetry API where the application has imported it.

No tenant, principal, record or session is a value of an attribute: each would make a series of its own, and
tell of somebody. What an engine calls its rules is bounded too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from agent_runtime_ref.telemetry import conventions as names
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.telemetry.events import CATALOGUE, Event

RULES_MAX = 200
OTHER = "other"
_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}\Z")
_EFFECTS = frozenset({"allow", "deny", "quarantine"})
# What an event that tells of a decision was about, where no field of it says so.
_OPERATIONS = {
    "retrieval": "search",
    "memory_write_decision": "write",
    "memory_forgotten": "delete",
    "policy_precheck": "precheck",
}
_KNOWN_OPERATIONS = frozenset((*names.OPERATIONS, "precheck"))

Lag = Callable[[], Mapping[str, int]]
Depth = Callable[[], int]


class _Instruments:
    """The instruments of one meter provider."""

    def __init__(self, api: Any, provider: Any) -> None:
        self.provider = provider
        meter = api.get_meter(names.SCOPE)
        self.decisions = _counter(meter, names.DECISIONS)
        self.rules = _counter(meter, names.DECISION_RULES)
        self.failures = _counter(meter, names.FAILURES)
        one = names.DURATION
        self.duration = meter.create_histogram(
            one.name,
            unit=one.unit,
            description=one.meaning,
            explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS,
        )


def _counter(meter: Any, one: names.Metric) -> Any:
    return meter.create_counter(one.name, unit=one.unit, description=one.meaning)


_made: _Instruments | None = None
_rules_seen: set[str] = set()


def _instruments() -> _Instruments | None:
    """The instruments of the provider that the application has set; None where nobody is listening."""
    global _made
    api = sys.modules.get("opentelemetry.metrics")
    if api is None:
        return None
    provider = api.get_meter_provider()
    if _made is None or _made.provider is not provider:
        _made = _Instruments(api, provider)
    return _made


def count(events: Iterable[Event]) -> None:
    """Count decisions, the rules behind them, and failures."""
    made = _instruments()
    if made is None:
        return
    for event in events:
        payload = event.payload
        if CATALOGUE[event.event_type].severity == "ERROR":
            error = payload.get(names.ERROR_TYPE) or event.event_type
            made.failures.add(1, {names.EVENT_TYPE: event.event_type, names.ERROR_TYPE: error})
        if "effect" in payload and CATALOGUE[event.event_type].decides:
            effect = payload["effect"] if payload["effect"] in _EFFECTS else OTHER
            made.decisions.add(1, {names.OPERATION: _operation(event), names.EFFECT: effect})
            for rule_id in payload.get("rule_ids", ()):
                made.rules.add(1, {names.RULE_ID: _rule(rule_id), names.EFFECT: effect})


def timed(operation: str, seconds: float, error: BaseException | None) -> None:
    """Record how long a gate took."""
    made = _instruments()
    if made is None:
        return
    attributes = {
        names.OPERATION_NAME: names.OPERATIONS.get(operation, "search_memory"),
        names.OPERATION: operation if operation in _KNOWN_OPERATIONS else OTHER,
    }
    if error is not None:
        attributes[names.ERROR_TYPE] = type(error).__name__
    made.duration.record(seconds, attributes)


def _operation(event: Event) -> str:
    told = event.payload.get("operation") or _OPERATIONS.get(event.event_type)
    return str(told) if told in _KNOWN_OPERATIONS else OTHER


def _rule(rule_id: object) -> str:
    """The id of a rule, as long as there are not too many: policies of others may make them up as they go."""
    if rule_id in _rules_seen:
        return str(rule_id)
    if not isinstance(rule_id, str) or not _RULE.match(rule_id) or len(_rules_seen) >= RULES_MAX:
        return OTHER
    _rules_seen.add(rule_id)
    return rule_id


class Gauges:
    """What is looked up whenever a reader of metrics collects, until it is closed."""

    def __init__(self, *, depth: Depth, lag: Lag | None = None) -> None:
        """Register the gauges with the provider that the application has set."""
        from opentelemetry import metrics

        self._open = True
        self._failed: set[str] = set()
        meter = metrics.get_meter(names.SCOPE)
        looks: Sequence[tuple[names.Metric, Callable[[], Mapping[str, int]]]] = (
            (names.QUARANTINE_DEPTH, lambda: {"": depth()}),
            *(((names.EXPORT_LAG, lag),) if lag is not None else ()),
        )
        for one, look in looks:
            meter.create_observable_gauge(
                one.name, [partial(self._observed, one, look)], unit=one.unit, description=one.meaning
            )

    def _observed(
        self, one: names.Metric, look: Callable[[], Mapping[str, int]], options: Any
    ) -> Iterator[Any]:
        from opentelemetry.metrics import Observation

        if not self._open:
            return
        try:
            found = look()
        except Exception as error:  # a number that is missing must stop nobody
            if one.name not in self._failed:
                self._failed.add(one.name)
                diagnostics.warning("metric_not_observed", metric=one.name, reason=type(error).__name__)
            return
        for value, number in found.items():
            yield Observation(number, dict(zip(one.attributes, (value,), strict=False)))

    def close(self) -> None:
        """Observe nothing any more; the API has no way to take an instrument back."""
        self._open = False
