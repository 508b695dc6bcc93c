"""`PreferenceStore`: what users like and dislike beyond one conversation, in governed profile records.

It reads through the read gate and forgets through the write gate. It does not write: a finding goes to the
curator, whose writer is the only one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agent_runtime_ref.clock import Ids, RandomIds
from agent_runtime_ref.contracts import Caller, ForgetReceipt, MemoryRecord
from agent_runtime_ref.contracts.arguments import each_of, require_integer, require_string
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.enforcement.removals import Meant
from agent_runtime_ref.errors import AnonymousUserError, StoreError, UsageError
from agent_runtime_ref.preferences.curation import Curated, Curation, default_curation
from agent_runtime_ref.preferences.encoder import lexical_encoder
from agent_runtime_ref.preferences.forgetting import Forgotten, meant
from agent_runtime_ref.preferences.identity import current_session, is_anonymous, local_caller
from agent_runtime_ref.preferences.keys import Key
from agent_runtime_ref.preferences.offered import finding_of, require_standing
from agent_runtime_ref.preferences.paging import own_records, query_of
from agent_runtime_ref.preferences.places import VARIABLE, Places, address_of
from agent_runtime_ref.preferences.preference import KINDS, MEMORY_CLASS, PURPOSE, Preference
from agent_runtime_ref.preferences.relevance import in_domain, in_force, relevant
from agent_runtime_ref.recall.embedding import Embedder, Vectors
from agent_runtime_ref.store_address import shown
from agent_runtime_ref.telemetry.turns import looking

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["PreferenceStore"]

RELEVANT_MAX = 20
_MEMORY_OPTIONS = frozenset(
    ("engine", "policies", "policies_digest", "verification", "opa", "log_mask", "trace", "clock")
)


class PreferenceStore:
    """The long-term preferences of users, each seeing his own. Thread-safe; `close` it, or use it in `with`.

    A caller who is not named is the local user of the environment. Nobody in particular has none.
    """

    def __init__(
        self,
        address: str | Path | None = None,
        *,
        memory: GovernedMemory | None = None,
        curation: Curation | None = None,
        encoder: Embedder | None = None,
        ids: Ids | None = None,
        **options: Any,
    ) -> None:
        """Name where preferences are; nothing is opened or made before it is needed.

        `address` is `file:DIR`, `sqlite:PATH` or `redis://...`, by default what AGENT_RUNTIME_PREFERENCES
        says; a path is the folder of `file:`. `memory` is governed memory that is open already, and stays its
        owner's to close. `encoder` takes the place of the lexical one; `options` are those of
        `GovernedMemory.open`: engine, policies, trace, clock and such.

        Raises:
            UsageError: an option is not known, or both an address and a memory are given.
            StoreAddressError: the address is not understood.
        """
        unknown = sorted(options.keys() - _MEMORY_OPTIONS)
        if unknown:
            raise UsageError(f"a preference store knows no option `{unknown[0]}`")
        if memory is not None and address is not None:
            raise UsageError("a preference store has an address or a memory, not both")
        self._memory = memory
        self._ids = ids or RandomIds()
        if ids is not None:
            options["ids"] = ids
        named = f"file:{address}" if isinstance(address, Path) else address or address_of()
        origin = None if memory is not None or address else VARIABLE
        self._places = Places(
            "memory:" if memory is not None else named, partial(_opened, options), origin=origin
        )
        self._closed = False
        self._curation = curation
        self._vectors = Vectors(encoder or lexical_encoder())

    @property
    def address(self) -> str:
        """Where the preferences are, without a password."""
        return shown(self._places.address) if self._memory is None else self._memory.store_url

    # --- writing -------------------------------------------------------------------------------------------

    def write(
        self, preference: object, *, caller: Caller | None = None, source_session: str | None = None
    ) -> Curated:
        """Hand one preference to the curator, and return what became of it.

        Takes a `Finding`, or any object or mapping with content, category and polarity.

        Raises:
            AnonymousUserError: the caller is nobody in particular.
            PreferenceInvalidError: it is no preference.
            PolicyDeniedError, EngineFailureError, StoreError: nothing was written.
        """
        finding = finding_of(preference)
        return self.write_many([finding], caller=caller, source_session=source_session)[0]

    def write_many(
        self,
        findings: Sequence[Finding],
        *,
        caller: Caller | None = None,
        source_session: str | None = None,
    ) -> tuple[Curated, ...]:
        """Hand findings to the curator as one change, and return what became of each, in order.

        Raises what `write` raises.
        """
        findings = tuple(each_of("findings", findings, Finding))
        caller = caller or local_caller()
        if is_anonymous(caller):
            raise AnonymousUserError
        for finding in findings:
            require_standing(finding)
        if not findings:
            return ()
        memory = self._of(caller, creates=True)
        assert memory is not None, "a memory that may be made is there"
        session = source_session or current_session() or caller.session_id
        curation = self._curation or default_curation()
        return curation.keep(findings, memory=memory, caller=caller, source_session=session)

    # --- reading -------------------------------------------------------------------------------------------

    def read(self, *, caller: Caller | None = None, domain: str | None = None) -> tuple[Preference, ...]:
        """Return all preferences of the caller's subject that the policy shows and that count, newest first.

        With `domain`, those of it and those of every domain.
        """
        return tuple(in_force(self._kept(caller or local_caller(), domain)))

    def _kept(self, caller: Caller, domain: str | None = None) -> list[Preference]:

        def wanted(record: MemoryRecord) -> bool:
            preference = Preference.of(record)
            return preference is not None and in_domain(preference, domain)

        records = self._records(wanted, caller)
        return [one for record in records if (one := Preference.of(record)) is not None]

    def standing(self, caller: Caller) -> tuple[Preference, ...]:
        """Return all of them, as the runtime asks for what is to be enforced in a turn."""
        return self.read(caller=caller)

    def read_relevant(
        self, text: str, *, caller: Caller | None = None, limit: int = 5, domain: str | None = None
    ) -> tuple[Preference, ...]:
        """Return the preferences that `text` is about, nearest first, `limit` of them at most.

        A hard one is returned behind those, whether the text names it or not, as far as there is room.

        Raises:
            UsageError: `limit` is not from 1 to 20.
        """
        require_string("text", text)
        require_integer("limit", limit)
        if not 1 <= limit <= RELEVANT_MAX:
            raise UsageError(f"limit: must be from 1 to {RELEVANT_MAX}")
        caller = caller or local_caller()
        memory = self.memory_of(caller)
        if memory is None:
            return ()

        def choose(records: Sequence[MemoryRecord]) -> list[int]:
            places = {
                one.record_id: place
                for place, record in enumerate(records)
                if (one := Preference.of(record)) is not None and in_domain(one, domain)
            }
            known = (Preference.of(records[place]) for place in places.values())
            found = relevant(text, in_force([one for one in known if one is not None]), self._vectors)
            return [places[one.preference.record_id] for one in found[:limit]]

        query = query_of(caller, PURPOSE, (MEMORY_CLASS,), limit, kinds=KINDS, ids=self._ids)
        result = memory.choose(query, choose, caller=caller)
        return tuple(one for hit in result.hits if (one := Preference.of(hit.record)) is not None)

    def _records(self, wanted: Callable[[MemoryRecord], bool], caller: Caller) -> tuple[MemoryRecord, ...]:
        memory = self.memory_of(caller)
        if memory is None:
            return ()
        return own_records(
            memory,
            wanted,
            caller=caller,
            purpose=PURPOSE,
            classes=(MEMORY_CLASS,),
            kinds=KINDS,
            ids=self._ids,
        ).records

    # --- forgetting ----------------------------------------------------------------------------------------

    def forget(self, text_or_key: str, *, caller: Caller | None = None) -> Forgotten:
        """Remove the preference of that key, or the one that is described, at once and in every revision.

        Where none, or more than one, is described, nothing is removed and the near ones are named.

        Raises:
            AnonymousUserError: the caller is nobody in particular.
            PolicyDeniedError, EngineFailureError, StoreError: nothing was removed.
        """
        require_string("text_or_key", text_or_key)
        caller = caller or local_caller()
        if is_anonymous(caller):
            raise AnonymousUserError
        with looking():  # nobody is handed what is only looked through
            kept = self._kept(caller)
        found, near = meant(text_or_key, in_force(kept), self._vectors)
        memory = self._of(caller, creates=False)
        key = Key.read(text_or_key)
        if memory is None or (found is None and key is None):
            return Forgotten((), near)
        named = key if found is None else found.key
        # With what stands in force also its opposite that does not: it must not come to light instead.
        hidden = [] if found is None else [one.key for one in kept if one.key == found.key.opposite]
        keys = tuple(map(str, (named, *hidden)))
        # By its key also what is not shown: an older wording, or one that waits for its review.
        removed = memory.remove(Meant(MEMORY_CLASS, keys=keys), caller=caller)
        return Forgotten(
            tuple(dict.fromkeys(one.record.key or "" for one in removed)), () if removed else near
        )

    def forget_all(self, *, caller: Caller | None = None) -> ForgetReceipt | None:
        """Remove everything about the caller's subject from where its preferences are; None where is nothing.

        Files of his that were damaged and put aside go too.

        Raises:
            PolicyDeniedError, EngineFailureError, StoreError: nothing was removed.
        """
        caller = caller or local_caller()
        if is_anonymous(caller):
            return None
        aside = self._places.aside_of(caller)
        memory = self._of(caller, creates=bool(aside))
        if memory is None:
            return None
        receipt = memory.forget(subject=caller.own_subject, caller=caller)
        for path in self._places.aside_of(caller):  # opening it may have put another one aside
            path.unlink(missing_ok=True)
        return receipt

    def without_derived_key(self, *, caller: Caller | None = None) -> tuple[MemoryRecord, ...]:
        """Return the records of preferences whose key was not derived from parts."""
        return self._records(lambda one: Preference.of(one) is None, caller or local_caller())

    def clean(self, *, caller: Caller | None = None) -> list[str]:
        """Remove the records of preferences whose key was not derived; returns their ids."""
        caller = caller or local_caller()
        with looking():
            ids = tuple(one.memory_id for one in self.without_derived_key(caller=caller))
        memory = self.memory_of(caller)
        if memory is None or not ids:
            return []
        what = Meant(MEMORY_CLASS, record_ids=ids, tombstones=False)
        return [one.record.memory_id for one in memory.remove(what, caller=caller)]

    # --- where ---------------------------------------------------------------------------------------------

    def memory_of(self, caller: Caller) -> GovernedMemory | None:
        """Return the governed memory that holds the caller's preferences.

        None where there is none yet, and for nobody in particular.
        """
        return None if is_anonymous(caller) else self._of(caller, creates=False)

    def aside_of(self, caller: Caller) -> tuple[Path, ...]:
        """Return the files of the caller's subject that were damaged and put aside; they hold his words."""
        return () if self._memory is not None else tuple(self._places.aside_of(caller))

    def close(self) -> None:
        """Close what was opened here; whoever uses it afterwards is refused."""
        self._closed = True
        self._places.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _of(self, caller: Caller, *, creates: bool) -> GovernedMemory | None:
        if self._closed:
            raise StoreError(self.address, "the preferences are closed; open them again")
        return self._memory or self._places.of(caller, creates=creates)


def _opened(options: dict[str, Any], store: str, *, must_exist: bool) -> GovernedMemory:
    from agent_runtime_ref.runtime import GovernedMemory

    return GovernedMemory.open(store, must_exist=must_exist, **options)
