"""Numbers for a dashboard, through the OpenTelemetry API where the application has imported it.

No tenant, principal, record or session is a value of an attribute: each would make a series of its own, and
tell of somebody. What an engine calls its rules is bounded too.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any

from agent_runtime_ref.telemetry import conventions as names
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.telemetry.events import CATALOGUE, Event

RULES_MAX = 200
OTHER = names.OTHER
_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}\Z")
_EFFECTS = frozenset({"allow", "deny", "quarantine"})
# What an event that tells of a decision was about, where no field of it says so.
_OPERATIONS = {
    "retrieval": "search",
    "memory_write_decision": "write",
    "memory_forgotten": "delete",
    "policy_precheck": names.PRECHECK,
}
_KNOWN_OPERATIONS = frozenset(names.METRIC_OPERATIONS)

Lag = Callable[[], Mapping[str, int]]
Depth = Callable[[], int]


class _Tally:
    """Counts by the values of a metric's attributes, which are told when somebody collects.

    Adding to an SDK's counter costs more than all the rest of a gate's metrics; this costs next to nothing.
    """

    def __init__(self, meter: Any, one: names.Metric, observation: Any) -> None:
        self._attributes = one.attributes
        self._observation = observation
        self._lock = Lock()
        self._counts: Counter[tuple[str, ...]] = Counter()
        meter.create_observable_counter(one.name, [self._told], unit=one.unit, description=one.meaning)

    def add(self, *values: str) -> None:
        """Count one more, with the values of the attributes in the order of the registry."""
        with self._lock:
            self._counts[values] += 1

    def _told(self, options: object) -> list[Any]:
        with self._lock:
            counts = dict(self._counts)
        return [
            self._observation(count, dict(zip(self._attributes, values, strict=True)))
            for values, count in counts.items()
        ]


class _Instruments:
    """The instruments of one meter provider."""

    def __init__(self, api: Any, provider: Any) -> None:
        self.provider = provider
        meter = api.get_meter(names.SCOPE)
        self.decisions, self.rules, self.failures = (
            _Tally(meter, one, api.Observation)
            for one in (names.DECISIONS, names.DECISION_RULES, names.FAILURES)
        )
        one = names.DURATION
        self.duration = meter.create_histogram(
            one.name,
            unit=one.unit,
            description=one.meaning,
            explicit_bucket_boundaries_advisory=names.DURATION_BOUNDS,
        )


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
            made.failures.add(event.event_type, str(error))
        if "effect" in payload and CATALOGUE[event.event_type].decides:
            effect = payload["effect"] if payload["effect"] in _EFFECTS else OTHER
            made.decisions.add(_operation(event), effect)
            for rule_id in payload.get("rule_ids", ()):
                made.rules.add(_rule(rule_id), effect)


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
