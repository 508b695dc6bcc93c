"""From the path of a bundle to its review; the one place where the parts are put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.controls import Control, NoControls, read_controls
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.review.controls import control_findings, controls_of
from agent_runtime_ref.review.evaluation import Evaluation
from agent_runtime_ref.review.examples import Search
from agent_runtime_ref.review.model import ERROR, SEVERITIES, Finding, Review, SeedView
from agent_runtime_ref.review.rules import RuleReader, rule_findings
from agent_runtime_ref.review.sentences import outcome_of, result_of
from agent_runtime_ref.review.situations import Seed, Writer, seeds_of, situations
from agent_runtime_ref.review.tested import test_findings, tested

if TYPE_CHECKING:
    from agent_runtime_ref.policy.signing import Verification

__all__ = ["review_bundle"]


def review_bundle(
    path: Path | str | None = None,
    *,
    expected_digest: str | None = None,
    verification: Verification | None = None,
) -> Review:
    """Return the review of the bundle at `path`, by default the bundled policies.

    Everything in it follows from the files of the bundle: the same bundle gives the same review.

    Raises:
        BundleError: the bundle cannot be loaded, or permits what every policy must refuse.
        ResourceNotFoundError: the path does not exist.
    """
    location = policies_path(path)
    bundle = load_bundle(location, expected_digest=expected_digest, verification=verification)
    engine = EmbeddedEngine(bundle)
    try:
        return _reviewed(bundle, location, Evaluation(engine))
    finally:
        engine.close()


def _reviewed(bundle: Bundle, location: Path, evaluation: Evaluation) -> Review:
    writer, found, table = Writer(bundle), tested(location), _controls_table(location)
    seeds = seeds_of(writer, evaluation)
    reader = RuleReader(bundle, Search(evaluation, bundle.settings, writer), seeds, found)
    rules = reader.rules()
    findings = (
        *control_findings(table, rules),
        *test_findings(found, rules),
        *rule_findings(rules),
        *_unanswered(evaluation, seeds, bundle.settings),
        *reader.findings(),
    )
    return Review(
        digest=bundle.digest,
        revision=bundle.revision,
        version=str(bundle.settings.get("version", "")),
        rules=rules,
        controls=controls_of(table, rules),
        findings=_in_order(findings),
        seeds=tuple(_seed(one) for one in seeds),
        coverage=dict(sorted(found.coverage.items())),
        tests_run=len(found.results),
        tests_failed=sum(1 for one in found.results if not one.passed),
        has_catalogue=not isinstance(table, NoControls),
    )


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return each finding once, the most severe first."""
    return tuple(sorted(set(findings), key=lambda one: (SEVERITIES.index(one.severity), one)))


def _controls_table(location: Path) -> tuple[Control, ...] | NoControls:
    """Return the controls of the bundle; where it lies is no part of its review."""
    table = read_controls(location)
    if isinstance(table, NoControls):
        return replace(table, problem=table.problem.replace(f"{location}/", ""))
    return table


def _unanswered(
    evaluation: Evaluation, seeds: Sequence[Seed], settings: Mapping[str, Any]
) -> Iterator[Finding]:
    """Yield the seeds, as they are, about which the policies give no answer of the right shape."""
    for package in ("memory.read", "memory.write"):
        for one in situations(package, seeds, settings):
            if evaluation.one(one.gate, one.question, one.candidate).failed:
                message = f"{package} gives no clear answer about a {one.name} of {one.base}"
                yield Finding(ERROR, "no-answer", package, message)


def _seed(seed: Seed) -> SeedView:
    record, word = seed.record, outcome_of(seed.outcome, "")
    return SeedView(
        record_id=record.memory_id,
        memory_class=record.memory_class,
        kind=record.kind,
        source=record.source,
        content=record.content,
        trust=seed.trust,
        result="no clear answer" if seed.outcome.failed else result_of("write", word, seed.outcome, ""),
    )
