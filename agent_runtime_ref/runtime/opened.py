"""The composition root: store, engine and gates, opened from addresses and closed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agent_runtime_ref.clock import Clock, Ids, RandomIds, SystemClock
from agent_runtime_ref.contracts import (
    Caller,
)
from agent_runtime_ref.contracts.arguments import require_callable, require_flag, require_string
from agent_runtime_ref.enforcement.gates import Gates, Surroundings, gates_of
from agent_runtime_ref.enforcement.reload import PolicyOrigin, PolicyReload
from agent_runtime_ref.errors import DocumentTypeError, StoreError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engine import PolicyEngine
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.policy.signing import Verification
from agent_runtime_ref.policy.source import PolicySource, verification_of
from agent_runtime_ref.runtime.observed import waiting
from agent_runtime_ref.runtime.options import check_options, require_path
from agent_runtime_ref.stores.base import Chain, ChainedByTenant, Store
from agent_runtime_ref.stores.chains import chain_with
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.stores.subject_keys import SubjectKeys
from agent_runtime_ref.telemetry.logfile import Rotation, rotation_of
from agent_runtime_ref.telemetry.mask import Mask
from agent_runtime_ref.telemetry.metrics import Gauges, Lag
from agent_runtime_ref.telemetry.places import chain_name
from agent_runtime_ref.telemetry.trace import TraceFile
from agent_runtime_ref.telemetry.words import Pseudonyms

if TYPE_CHECKING:
    from agent_runtime_ref.config import Settings
    from agent_runtime_ref.policy.opa_server.settings import OpaSettings

_SEEDS = "seeds"


class OpenedMemory:
    """What stands behind the facade: the gates in force, the log, and how all of it is opened and closed."""

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
        self._closed = False
        self._policies = PolicyReload(gates_of(bundle, engine, surroundings), origin)
        self._gauges: Gauges | None = None
        self._gates.recorder.loaded()

    @property
    def _gates(self) -> Gates:
        """The gates in force. INVARIANT: a call takes them once, so that all it does is of one bundle.

        Raises:
            StoreError: the memory has been closed.
        """
        self._require_open()
        return self._policies.current

    @property
    def durable(self) -> bool:
        """Whether what was kept outlives the process."""
        self._require_open()
        return self._store.durable

    @property
    def clock(self) -> Clock:
        """The clock by which everything here is stamped."""
        return self._gates.surroundings.clock

    @property
    def ids(self) -> Ids:
        """Where ids of this memory come from."""
        return self._gates.surroundings.ids

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
        `policies_digest` pins the bundle, `verification` (else the environment) demands its signature, and
        with `reload_seconds` it is looked for anew every so often. `opa` says how a server is reached where
        `engine` is one; with `must_exist` no store is made.

        Raises:
            StoreError: the store cannot be opened.
            BundleError: the policies cannot be used.
            SeedsRefusedError: the write policy refuses a seed record.
            UsageError: there is no such engine, its server could not be asked safely, or a key not be read.
        """
        check_options(
            store=store,
            engine=engine,
            places=(("policies", policies), ("log", log), ("trace", trace)),
            policies_digest=policies_digest,
            verification=verification,
            reload_seconds=reload_seconds,
            rotation=(("log_rotate_bytes", log_rotate_bytes), ("log_rotate_seconds", log_rotate_seconds)),
            opa=opa,
            log_mask=log_mask,
            clock=clock,
            ids=ids,
            must_exist=must_exist,
        )
        memory = cls._put_together(
            PolicySource.at(policies, digest=policies_digest, verification=verification or verification_of()),
            partial(open_engine, engine, opa=opa),
            partial(_store_behind, store, log, rotation_of(log_rotate_bytes, log_rotate_seconds), must_exist),
            clock=clock or SystemClock(),
            ids=ids or RandomIds(),
            trace=None if trace is None else TraceFile(Path(trace)),
            mask=Mask.of(log_mask),
        )
        memory._begin(store, reload_seconds)
        return memory

    @classmethod
    def _put_together(
        cls,
        source: PolicySource,
        engine_of: Callable[[Bundle], PolicyEngine],
        store_of: Callable[[], Store],
        **options: Any,
    ) -> Self:
        """Return memory over store, engine and the policies of a source; none stays open if one fails."""
        content = source.content()
        bundle = source.bundle(content)
        with ExitStack() as undone:
            engine = engine_of(bundle)
            undone.callback(engine.close)
            store = store_of()
            undone.callback(store.close)
            origin = PolicyOrigin(source, engine_of, content.mark)
            memory = cls(store=store, engine=engine, bundle=bundle, origin=origin, **options)
            undone.pop_all()
        return memory

    def _begin(self, store: str, reload_seconds: float | None) -> None:
        """Take in the seeds that the address `store` names, and follow the policies if they are to be."""
        scheme, _, path = store.partition(":")
        with ExitStack() as undone:
            undone.callback(self.close)
            if scheme == _SEEDS:
                self.store_url = f"{_SEEDS}:{path}"
                self.load_seeds(path or None)
            if reload_seconds is not None:
                self._policies.watch(reload_seconds)
            undone.pop_all()

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

    def reload_policies(self) -> bool:
        """Take the policies that are now where they came from; return whether they are others than before.

        Calls under way end under the policies they began with. What cannot be used changes nothing, and is
        told as a `policy_engine_failure`.

        Raises:
            BundleError: the policies cannot be used, or are not the pinned ones.
        """
        self._require_open()
        return self._policies.reload()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(self.store_url, "the memory is closed; open it again")

    def _check(self, caller: object, given: object = None, wanted: type = object, name: str = "") -> None:
        """Refuse a call that no gate could make sense of.

        Raises:
            DocumentTypeError: the caller is no `Caller`, or what is given is not of the type `wanted`.
            StoreError: the memory has been closed.
        """
        self._require_open()
        if not isinstance(caller, Caller):
            raise DocumentTypeError("caller: must be a Caller", path="caller")
        if not isinstance(given, wanted):
            raise DocumentTypeError(f"{name}: must be a {wanted.__name__}", path=name)

    def log_lines(self, *, read: bool = False) -> Iterable[str]:
        """Return the sealed lines of the decision log, oldest first: of writes, or of reads."""
        require_flag("read", read)
        return self._store.log(read)

    def raw_log(self, *, read: bool = False) -> Iterable[bytes]:
        """Return the lines of the log as they are kept, damaged ones too: to be verified."""
        require_flag("read", read)
        return self._store.raw_log(read)

    def log_chains(self, *, read: bool = False, tenant_id: str | None = None) -> Iterator[Chain]:
        """Return the chains of the log of writes, or of reads: one for each tenant where the store has so.

        With `tenant_id` it is the one chain that the lines of that tenant go to, which whoever may see no
        other tenant may read.
        """
        require_flag("read", read)
        require_string("tenant_id", tenant_id, optional=True)
        if tenant_id is not None:
            return iter((chain_with(self._store, tenant_id, read=read),))
        if isinstance(self._store, ChainedByTenant):
            return self._store.chains(read)
        name = chain_name(self._store.log_mode, read=read)
        return iter((Chain(name, None, partial(self._store.raw_log, read)),))

    def observe_metrics(self, *, lag: Lag | None = None) -> None:
        """Have the application's metrics look up how many records wait for review, as often as they collect.

        `lag` says by log how many events an exporter has not delivered (see `export.backlog`). Both look into
        the store of all tenants; where who opened it may not, there is no number.
        """
        self._require_open()
        if lag is not None:
            require_callable("lag", lag)
        if self._gauges is not None:
            self._gauges.close()
        self._gauges = Gauges(depth=lambda: waiting(self._store, self.clock.now_us()), lag=lag)

    @property
    def is_chained_by_tenant(self) -> bool:
        """Whether the lines of each tenant are numbered by themselves."""
        self._require_open()
        return isinstance(self._store, ChainedByTenant)

    def close(self) -> None:
        """Close the store and the engine."""
        self._closed = True
        if self._gauges is not None:
            self._gauges.close()
        self._policies.close()
        self._store.close()
        self._policies.current.engine.close()

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

        self._require_open()
        require_path("path", path)
        load_through_gate(load_seed_records(path), self._gates.writes)


def _store_behind(address: str, log: str | Path | None, rotation: Rotation | None, must_exist: bool) -> Store:
    """Return the store itself; seeds are read into an empty one."""
    of_seeds = address.partition(":")[0] == _SEEDS
    place = None if log is None else Path(log)
    return open_store("memory:" if of_seeds else address, log=place, rotation=rotation, must_exist=must_exist)
