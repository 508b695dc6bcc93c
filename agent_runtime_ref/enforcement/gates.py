"""The two gates and all that is made from one bundle, as one value that is replaced as a whole.

Settings, detectors, the engine and the digest in a decision must come from the same policies. So they are
built together, a call takes the value once, at its start, and works with it to its end, whatever is loaded
meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agent_runtime_ref.clock import Clock, Ids
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.detectors import Detectors
from agent_runtime_ref.enforcement.read import ReadGate
from agent_runtime_ref.enforcement.recorder import Recorder
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.enforcement.scanner import Scanner
from agent_runtime_ref.enforcement.scope_counts import ScopeCounts
from agent_runtime_ref.enforcement.verdicts import Verdicts
from agent_runtime_ref.enforcement.write import WriteGate
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.stores.base import Store
from agent_runtime_ref.telemetry.mask import Mask
from agent_runtime_ref.telemetry.trace import TraceFile
from agent_runtime_ref.telemetry.words import Pseudonyms, Words

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.compact import CompactionGate
    from agent_runtime_ref.enforcement.forget import ForgetGate
    from agent_runtime_ref.enforcement.recall import Recaller
    from agent_runtime_ref.enforcement.revise import RevisionGate
    from agent_runtime_ref.enforcement.runs import RunGate
    from agent_runtime_ref.enforcement.withdrawal import WithdrawalGate

__all__ = ["Gates", "Surroundings", "gates_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the gates work with whatever the policies are; it outlives every bundle."""

    store: Store
    clock: Clock
    ids: Ids
    trace: TraceFile | None
    mask: Mask | None = None
    pseudonyms: Pseudonyms  # one set for all bundles: a subject keeps its pseudonym over a change of policy
    counts: ScopeCounts = field(default_factory=ScopeCounts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """The gates over one store under one bundle; immutable, so that threads may share it."""

    bundle: Bundle
    engine: PolicyEngine
    surroundings: Surroundings
    point: DecisionPoint
    attributes: Attributes
    recorder: Recorder
    scanner: Scanner
    reads: ReadGate
    writes: WriteGate
    verdicts: Verdicts

    @property
    def revisions(self) -> RevisionGate:
        """The gate of what is known of a person under a few keys; made when it is asked for."""
        from agent_runtime_ref.enforcement.revise import RevisionGate

        return RevisionGate(
            point=self.point,
            store=self.surroundings.store,
            attributes=self.attributes,
            recorder=self.recorder,
            scanner=self.scanner,
            verdicts=self.verdicts,
            reads=self.reads,
            shown_at_once=int(self.bundle.settings["limits"]["query_max"]),
        )

    @property
    def forgets(self) -> ForgetGate:
        """The gate of removals; made when it is asked for, which is seldom."""
        from agent_runtime_ref.enforcement.forget import ForgetGate

        return ForgetGate(
            point=self.point,
            store=self.surroundings.store,
            attributes=self.attributes,
            recorder=self.recorder,
        )

    @property
    def recalls(self) -> Recaller:
        """Recall through the read gate; made when it is asked for."""
        from agent_runtime_ref.enforcement.recall import Recaller

        surroundings = self.surroundings
        return Recaller(reads=self.reads, counts=surroundings.counts, ids=surroundings.ids)

    @property
    def compactions(self) -> CompactionGate:
        """The gate that merges repetitions; made when it is asked for."""
        from agent_runtime_ref.enforcement.compact import CompactionGate

        return CompactionGate(
            point=self.point,
            store=self.surroundings.store,
            attributes=self.attributes,
            recorder=self.recorder,
            reads=self.reads,
            settings=self.bundle.settings,
            ids=self.surroundings.ids,
        )

    @property
    def runs(self) -> RunGate:
        """The gate of turns; made when it is asked for."""
        from agent_runtime_ref.enforcement.runs import RunGate

        return RunGate(
            point=self.point,
            reads=self.reads,
            recorder=self.recorder,
            words=self.attributes.words,
            settings=self.bundle.settings,
            clock=self.surroundings.clock,
            ids=self.surroundings.ids,
        )

    @property
    def reviews(self) -> WithdrawalGate:
        """The gate of the review queue, both ways; made when it is asked for, which is seldom."""
        from agent_runtime_ref.enforcement.readers import Readers
        from agent_runtime_ref.enforcement.withdrawal import WithdrawalGate

        point, store, attributes = self.point, self.surroundings.store, self.attributes
        purposes = sorted(self.bundle.settings["purposes"])
        return WithdrawalGate(
            point=point,
            store=store,
            attributes=attributes,
            recorder=self.recorder,
            scanner=self.scanner,
            readers=Readers(point=point, store=store, attributes=attributes, purposes=purposes),
        )


def gates_of(bundle: Bundle, engine: PolicyEngine, surroundings: Surroundings) -> Gates:
    """Return the gates under `bundle`, decided by `engine`.

    Raises:
        BundleError: the detectors of the bundle cannot be used.
    """
    store, clock, ids = surroundings.store, surroundings.clock, surroundings.ids
    prefixes = bundle.settings["protected_keys"]["prefixes"]
    scanner = Scanner(Detectors(bundle.detectors), protected_prefixes=prefixes)
    words = Words(suspicious=scanner.suspicious, key=store.store_key())
    attributes = Attributes(words, surroundings.pseudonyms)
    point = DecisionPoint(engine, clock)
    recorder = Recorder(
        store=store,
        engine=engine,
        attributes=attributes,
        clock=clock,
        ids=ids,
        trace=surroundings.trace,
        mask=surroundings.mask,
    )
    reads = ReadGate(point=point, store=store, attributes=attributes, recorder=recorder, clock=clock)
    verdicts = Verdicts(
        store=store,
        attributes=attributes,
        recorder=recorder,
        ids=ids,
        durable_exempt=store.url.partition(":")[0] in bundle.settings["durable_on_volatile_stores"],
    )
    writes = WriteGate(
        point=point,
        store=store,
        attributes=attributes,
        recorder=recorder,
        scanner=scanner,
        verdicts=verdicts,
    )
    return Gates(
        bundle=bundle,
        engine=engine,
        surroundings=surroundings,
        point=point,
        attributes=attributes,
        recorder=recorder,
        scanner=scanner,
        reads=reads,
        writes=writes,
        verdicts=verdicts,
    )
