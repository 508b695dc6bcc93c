"""The pages about errors and events."""

from __future__ import annotations

import inspect

from agent_runtime_ref import errors
from agent_runtime_ref.cli import exit_codes
from agent_runtime_ref.telemetry.events import CATALOGUE, EVENT_NAME_PREFIX, EventType
from docs.generate.markdown import MARK, Part, names, page, sentences, table

_ENGINE_REASONS = {
    "engine_undefined": "The policy gave no decision for the question.",
    "engine_wrong_type": "The decision does not have the shape that a gate can carry out.",
    "engine_exception": "The engine raised an error, or was closed.",
    "engine_panic": "The engine's native code panicked.",
    "engine_timeout": "The OPA server gave no whole answer within the deadline.",
    "engine_unreachable": "No connection to the OPA server, or it ended before the answer did.",
    "engine_http_error": "The OPA server answered with an HTTP status that is not 200, a redirect for one.",
    "engine_malformed": "What answered is no OPA server: no HTTP, no JSON, or JSON with NaN in it.",
    "engine_answer_too_large": "The answer is larger than any decision can be.",
    "engine_breaker_open": "The OPA server failed several times running and is not asked for a moment.",
    "bundle_mismatch": "The OPA server runs other policies than the ones that were expected.",
    "bundle_missing": "No policies to decide with: nothing is there, or it is no bundle, cut off or damaged.",
    "bundle_tampered": "The bundle has another digest than was asked for, or a signature that does not hold.",
    "settings_malformed": "Data or manifest of the bundle are not usable.",
    "input_too_large": "The question is larger than the engine may be asked.",
    "input_malformed": "The question does not follow the schema of the policy's input; no engine was asked.",
    "obligation_unknown": "The decision demands something that the gate cannot do.",
}
_ERRORS_HEAD = """\
Every error that the package raises on purpose is one of these classes.
A program branches on the class or on `code`, which never changes.
`str(error)` is the message with the user's own values in the braces."""
_EVENTS_HEAD = """\
An event is a line of the decision log, a line of a JSONL trace, and an OpenTelemetry log record.
Over OpenTelemetry a field is the attribute `agent_memory.` and its name; only `error.type` stands as it is.
A field without a value is left out there.
No event holds the content of a memory or the text of a query."""


def error_classes() -> list[type[errors.GovernanceError]]:
    """Return every error class of the package: the base, then module by module as they stand there."""
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    found = [one for one in classes if issubclass(one, errors.GovernanceError)]
    return sorted(found, key=_place)


def _place(one: type[errors.GovernanceError]) -> tuple[bool, str, int]:
    return one is not errors.GovernanceError, one.__module__, inspect.getsourcelines(one)[1]


def errors_page() -> str:
    """Return docs/reference/errors.md."""
    assert set(_ENGINE_REASONS) == set(errors.ENGINE_FAILURE_REASONS)
    parts: list[Part] = ["# Errors", MARK.format(origin="agent_runtime_ref/errors"), _ERRORS_HEAD]
    for one in error_classes():
        bases = [base.__name__ for base in one.__bases__ if base is not Exception]
        rows = [f"- code: `{one.code}`", f"- message: `` {one.message} ``"]
        rows += [f"- exit code of the command: {_exit_code(one)}"]
        rows += [f"- is also: {names(bases)}"] if bases else []
        parts += [f"## {one.__name__}", sentences(one.__doc__ or ""), rows]
    return page(
        *parts,
        "## Reasons of an engine failure",
        "`EngineFailureError.reason` and `BundleError.reason` are one of these.",
        table(("reason", "what happened"), ((f"`{name}`", text) for name, text in _ENGINE_REASONS.items())),
    )


def _exit_code(one: type[errors.GovernanceError]) -> str:
    if issubclass(one, errors.BundleError):
        internal = (reason for reason in _ENGINE_REASONS if reason in exit_codes._BUNDLE_INTERNAL)
        return f"{exit_codes.INTERNAL} for {names(internal)}, else {exit_codes.USAGE}"
    fitting = (code for kind, code in exit_codes._CODES if issubclass(one, kind))
    return str(next(fitting, exit_codes.INTERNAL))


def events_page() -> str:
    """Return docs/reference/events.md."""
    common = frozenset.intersection(*(row.allowed for row in CATALOGUE.values()))
    decided = frozenset.intersection(*(row.allowed for row in CATALOGUE.values() if row.decides))
    parts: list[Part] = [
        "# Events",
        MARK.format(origin="agent_runtime_ref/telemetry/events.py"),
        _EVENTS_HEAD,
        [
            f"Every event may have {names(sorted(common))}.",
            f"An event that tells of a decision also has {names(sorted(decided - common))}.",
        ],
    ]
    for row in CATALOGUE.values():
        parts += [f"## {row.name}", sentences(row.when[0].upper() + row.when[1:])]
        parts.append(_event_rows(row, decided if row.decides else common))
    return page(*parts)


def _event_rows(row: EventType, known: frozenset[str]) -> list[str]:
    own = [name for name in row.fields if name not in known]
    return [
        f"- over OpenTelemetry: `{EVENT_NAME_PREFIX}{row.name}`",
        f"- severity: {row.severity}",
        f"- tells of a decision: {'yes' if row.decides else 'no'}",
        f"- fields of its own: {names(own)}",
    ]
