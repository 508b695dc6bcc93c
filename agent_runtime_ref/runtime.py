"""The composition root: opens a store, an engine and the gates, and is the facade over them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agent_runtime_ref.clock import Clock, Ids, RandomIds, SystemClock
from agent_runtime_ref.contracts import (
    Caller,
    ForgetReceipt,
    MemoryCandidate,
    RetrievalQuery,
    RetrievalResult,
    ReviewReceipt,
    WriteReceipt,
)
from agent_runtime_ref.contracts.caller import require_text
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.enforcement.gates import Gates, Surroundings, gates_of
from agent_runtime_ref.enforcement.reload import PolicyOrigin, PolicyReload
from agent_runtime_ref.enforcement.write import Outcome
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError, StoreError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.signing import Verification
from agent_runtime_ref.policy.source import PolicySource, verification_of
from agent_runtime_ref.stores.base import Chain, ChainedByTenant, Store
from agent_runtime_ref.stores.registry import open_store, require_driver
from agent_runtime_ref.stores.subject_keys import SubjectKeys
from agent_runtime_ref.telemetry.logfile import rotation_of
from agent_runtime_ref.telemetry.mask import Mask
from agent_runtime_ref.telemetry.places import chain_name
from agent_runtime_ref.telemetry.trace import TraceFile
from agent_runtime_ref.telemetry.words import Pseudonyms

if TYPE_CHECKING:
    from agent_runtime_ref.config import Settings
    from agent_runtime_ref.contracts.stored import StoredMemory
    from agent_runtime_ref.enforcement.explain import Explanation
    from agent_runtime_ref.enforcement.survey import Survey
    from agent_runtime_ref.policy.opa_server.settings import OpaSettings
    from agent_runtime_ref.recall.engine import Ranker
    from agent_runtime_ref.recall.hits import RecallResult

__all__ = ["Chain", "GovernedMemory", "Inspection", "migrate_store"]


class GovernedMemory:
    """Memory behind its two gates. Thread-safe; use it as a context manager or call `close`."""

    def __init__(
        self,
        *,
        store: Store,
        engine: PolicyEngine,
        bundle: Bundle,
        clock: Clock,
        ids: Ids,
        trace: TraceFile | None = None,
        mask: Mask | None = None,
        origin: PolicyOrigin | None = None,
    ) -> None:
        """Put the gates over an open store and engine; `open` does this from addresses."""
        self.store_url = store.url
        self._store = store
        pseudonyms = Pseudonyms(SubjectKeys(store), store.forgets)
        surroundings = Surroundings(
            store=store, clock=clock, ids=ids, trace=trace, pseudonyms=pseudonyms, mask=mask
        )
        self._policies = PolicyReload(gates_of(bundle, engine, surroundings), origin)
        self._closed = False
        self._gates.recorder.loaded()

    @property
    def _gates(self) -> Gates:
        """The gates in force. INVARIANT: a call takes them once, so that all it does is of one bundle."""
        return self._policies.current

    @property
    def bundle(self) -> Bundle:
        """The policies in force."""
        return self._gates.bundle

    @classmethod
    def open(
        cls,
        store: str = "seeds:",
        *,
        engine: str = "embedded",
        policies: str | Path | None = None,
        policies_digest: str | None = None,
        verification: Verification | None = None,
        reload_seconds: float | None = None,
        opa: OpaSettings | None = None,
        log: str | Path | None = None,
        log_mask: Sequence[str | Mapping[str, Any]] = (),
        log_rotate_bytes: int | None = None,
        log_rotate_seconds: int | None = None,
        trace: str | Path | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        must_exist: bool = False,
    ) -> Self:
        """Return governed memory over the store at address `store`.

        `seeds:PATH` reads a memory.yaml through the write gate, `memory:` is empty, `sqlite:PATH` and
        `postgresql://...` are durable. `log` says where the decision log of a store without one goes, `trace`
        where events are appended as JSONL. `log_mask` takes parts out of decision lines (see
        `telemetry.mask`); a log file is closed by `log_rotate_bytes` and `log_rotate_seconds`.
        `policies_digest` pins the bundle,
        `verification` (else the environment) demands its signature, and with `reload_seconds` it is looked
        for anew every so often. `opa` says how a server is reached where `engine` is one; with `must_exist`
        no store is made.

        Raises:
            StoreError: the store cannot be opened.
            BundleError: the policies cannot be used.
            SeedsRefusedError: the write policy refuses a seed record.
            UsageError: there is no such engine, its server could not be asked safely, or a key not be read.
        """
        source = PolicySource.at(
            policies, digest=policies_digest, verification=verification or verification_of()
        )
        content = source.content()
        bundle = source.bundle(content)
        engine_of = partial(open_engine, engine, opa=opa)
        clock = clock or SystemClock()
        scheme, _, path = store.partition(":")
        address = "memory:" if scheme == "seeds" else store
        with ExitStack() as undone:
            opened = engine_of(bundle)
            undone.callback(opened.close)
            inner = open_store(
                address,
                log=None if log is None else Path(log),
                rotation=rotation_of(log_rotate_bytes, log_rotate_seconds),
                must_exist=must_exist,
            )
            undone.callback(inner.close)
            memory = cls(
                store=inner,
                engine=opened,
                bundle=bundle,
                clock=clock,
                ids=ids or RandomIds(),
                trace=None if trace is None else TraceFile(Path(trace)),
                mask=Mask.of(log_mask),
                origin=PolicyOrigin(source, engine_of, content.mark),
            )
            if scheme == "seeds":
                memory.store_url = f"seeds:{path}"
                memory.load_seeds(path or None)
            if reload_seconds is not None:
                memory._policies.watch(reload_seconds)
            undone.pop_all()
        return memory

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        *,
        follow_policies: bool = True,
        clock: Clock | None = None,
        ids: Ids | None = None,
        must_exist: bool = False,
    ) -> Self:
        """Return governed memory as runtime.yaml and the environment say; see `config.load_settings`.

        Without `follow_policies` those of the start stay in force, whatever the settings say: what ends soon
        need not look for others.
        """
        return cls.open(
            settings.store,
            engine=settings.engine,
            policies=settings.policies,
            policies_digest=settings.policies_digest,
            verification=settings.verification,
            reload_seconds=settings.policies_reload_seconds if follow_policies else None,
            opa=settings.opa,
            log=settings.log,
            log_mask=settings.log_mask,
            log_rotate_bytes=settings.log_rotate_bytes,
            log_rotate_seconds=settings.log_rotate_seconds,
            trace=settings.trace,
            clock=clock,
            ids=ids,
            must_exist=must_exist,
        )

    def write(self, candidate: MemoryCandidate, *, caller: Caller) -> WriteReceipt:
        """Keep `candidate` if the policy admits it; see `WriteGate.write` for what it raises."""
        self._check(caller, candidate, MemoryCandidate, "candidate")
        return self._gates.writes.write(candidate, caller=caller)

    def write_many(self, candidates: Iterable[MemoryCandidate], *, caller: Caller) -> list[Outcome]:
        """Return a receipt or a `PolicyDeniedError` for each candidate, in order; one transaction a batch.

        Raises:
            WriteInterruptedError: engine or store failed on the way; it carries the outcomes so far.
        """
        self._check(caller)
        return self._gates.writes.write_many(candidates, caller=caller)

    def read(
        self, query: RetrievalQuery, *, caller: Caller, text: str | None = None, operation: str = "search"
    ) -> RetrievalResult:
        """Return what the policy lets `caller` see of `query`; see `ReadGate.read` for what it raises."""
        self._check(caller, query, RetrievalQuery, "query")
        if text is not None and not isinstance(text, str):
            raise DocumentTypeError("text: must be a string")
        return self._gates.reads.read(query, caller=caller, text=text, operation=operation)

    def recall(
        self,
        text: str,
        *,
        caller: Caller,
        purpose: str = "answer_generation",
        limit: int = 5,
        ranker: Ranker | None = None,
    ) -> RecallResult:
        """Return the caller's conversations that answer `text`, best first, as far as the policy shows them.

        Nothing is written but the decision; a hit carries its id. `ranker` takes the place of words and time.
        See `Recaller.recall` for what it raises.
        """
        self._check(caller)
        return self._gates.recalls.recall(text, caller=caller, purpose=purpose, limit=limit, ranker=ranker)

    def latest_profile(self, *, caller: Caller, purpose: str = "personalization") -> StoredMemory | None:
        """Return the caller's profile snapshot that was captured last, for the start of a conversation."""
        self._check(caller)
        return self._gates.recalls.latest_profile(caller=caller, purpose=purpose)

    def load_stored(self, records: Iterable[StoredMemory], *, caller: Caller) -> list[Outcome]:
        """Write a user's stored memories, each under its own id and instant, about the caller's subject.

        Returns a receipt or a `PolicyDeniedError` for each, in order: what the policy refuses is left out.

        Raises:
            RemoteMemoryValidationError: one of them is a retraction, which is no memory.
            RemoteMemoryScopeError: one of them belongs to another user than the caller's subject.
        """
        from agent_runtime_ref.seeds import load_stored

        self._check(caller)
        return load_stored(records, self._gates.writes, caller=caller)

    def inspect(self, inspection: Inspection, *, caller: Caller) -> RetrievalResult:
        """Return records as an operator sees them, whatever their status."""
        self._check(caller, inspection, Inspection, "inspection")
        return self._gates.reads.inspect(inspection, caller=caller)[0]

    def explain(
        self, inspection: Inspection, query: RetrievalQuery, *, operator: Caller, caller: Caller
    ) -> list[Explanation]:
        """Say for each record that `operator` sees what `query` by `caller` would do with it, and why.

        Looking is an inspection of its own, decided and logged as one.
        """
        from agent_runtime_ref.enforcement.explain import Explanation, explained

        gates = self._gates
        result, attributes = gates.reads.inspect(inspection, caller=operator)
        now_us = gates.surroundings.clock.now_us()
        question = gates.attributes.read(query, caller, now_us=now_us, has_text=False, operation="search")
        shown = [gates.attributes.candidate(one) for one in attributes]
        verdicts = explained(shown, question, point=gates.point, bundle=gates.bundle)
        return [Explanation(hit.record, *verdict) for hit, verdict in zip(result.hits, verdicts, strict=True)]

    def survey(self, *, caller: Caller) -> Survey:
        """Return the metadata of every record, for a replay; an inspection by an operator, logged as one."""
        from agent_runtime_ref.enforcement.survey import surveyed

        self._check(caller)
        return surveyed(self._gates, caller)

    def release(self, record_id: str, *, caller: Caller, reason: str) -> ReviewReceipt:
        """Let a record out of quarantine; see `ReviewGate.review` for what it raises."""
        return self._reviewed("release", record_id, caller, reason)

    def reject(self, record_id: str, *, caller: Caller, reason: str) -> ReviewReceipt:
        """Remove a record from quarantine for good; see `ReviewGate.review` for what it raises."""
        return self._reviewed("reject", record_id, caller, reason)

    def _reviewed(self, operation: str, record_id: str, caller: Caller, reason: str) -> ReviewReceipt:
        from agent_runtime_ref.enforcement.review_document import Request

        self._check(caller, record_id, str, "record_id")
        return self._gates.reviews.review(Request(operation, record_id, caller, reason))

    def forget(self, *, subject: str, caller: Caller, dry_run: bool = False) -> ForgetReceipt:
        """Remove everything about `subject` in the caller's tenant, and return the receipt."""
        self._check(caller, subject, str, "subject")
        require_text("subject", subject)
        if not subject.strip():
            raise DocumentValueError("subject: must not be empty")
        return self._gates.forgets.forget(subject, caller=caller, dry_run=dry_run)

    def reload_policies(self) -> bool:
        """Take the policies that are now where they came from; return whether they are others than before.

        Calls under way end under the policies they began with. What cannot be used changes nothing, and is
        told as a `policy_engine_failure`.

        Raises:
            BundleError: the policies cannot be used, or are not the pinned ones.
        """
        if self._closed:
            raise StoreError(self.store_url, "the memory is closed; open it again")
        return self._policies.reload()

    def _check(self, caller: object, given: object = None, wanted: type = object, name: str = "") -> None:
        """Refuse a call that no gate could make sense of.

        Raises:
            DocumentTypeError: the caller is no `Caller`, or what is given is not of the type `wanted`.
            StoreError: the memory has been closed.
        """
        if self._closed:
            raise StoreError(self.store_url, "the memory is closed; open it again")
        if not isinstance(caller, Caller):
            raise DocumentTypeError("caller: must be a Caller", path="caller")
        if not isinstance(given, wanted):
            raise DocumentTypeError(f"{name}: must be a {wanted.__name__}", path=name)

    def log_lines(self, *, read: bool = False) -> Iterable[str]:
        """Return the sealed lines of the decision log, oldest first: of writes, or of reads."""
        return self._store.log(read)

    def raw_log(self, *, read: bool = False) -> Iterable[bytes]:
        """Return the lines of the log as they are kept, damaged ones too: to be verified."""
        return self._store.raw_log(read)

    def log_chains(self, *, read: bool = False) -> Iterator[Chain]:
        """Return the chains of the log of writes, or of reads: one for each tenant where the store has so."""
        if isinstance(self._store, ChainedByTenant):
            return self._store.chains(read)
        name = chain_name(self._store.log_mode, read=read)
        return iter((Chain(name, None, partial(self._store.raw_log, read)),))

    @property
    def is_chained_by_tenant(self) -> bool:
        """Whether the lines of each tenant are numbered by themselves."""
        return isinstance(self._store, ChainedByTenant)

    def close(self) -> None:
        """Close the store and the engine."""
        self._closed = True
        self._policies.close()
        self._store.close()
        self._gates.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def load_seeds(self, path: str | Path | None = None) -> None:
        """Write the records of a memory.yaml (the bundled one without a path), each under its own id.

        Raises:
            SeedsRefusedError: the write policy refuses a seed record.
        """
        from agent_runtime_ref.config import load_seed_records
        from agent_runtime_ref.seeds import load_through_gate

        load_through_gate(load_seed_records(path), self._gates.writes)


def migrate_store(
    url: str, *, application: str | None = None, inspection: str | None = None
) -> dict[str, str | int]:
    """Make or migrate the schema of a PostgreSQL store as its owner, and return what was done.

    `application` and `inspection` name the roles that may use it; left out, those of the how-to.

    Raises:
        StoreAddressError: the address is no `postgresql://...`.
        StoreVersionError: the schema is newer than this version; nothing was changed.
        StoreCapabilityError: the driver or a role is missing, or a role could step round the walls.
        StoreError: the database did not do it; nothing was changed.
    """
    require_driver(url)
    from agent_runtime_ref.stores.postgres import migrate

    roles = {"application": application, "inspection": inspection}
    done = migrate(url, **{name: role for name, role in roles.items() if role is not None})
    return {"store": done.store, "before": done.before, "version": done.version}
