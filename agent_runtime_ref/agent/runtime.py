"""AgentRuntime: one turn from the message to the reply, with everything in between governed and told.

A turn reads as it goes: precheck, retrieval, layers, model and tools, reply; then the background worker. Each
stop has its event, and what was promised is written down before it leaves.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from agent_runtime_ref.agent.layers import Context, Item, Layer, retrieved_items
from agent_runtime_ref.agent.models import Model
from agent_runtime_ref.agent.models.base import require_model
from agent_runtime_ref.agent.parts import curator_over, model_of, worker_over
from agent_runtime_ref.agent.preferences import PreferenceLayer, preferences_over
from agent_runtime_ref.agent.result import TurnResult
from agent_runtime_ref.agent.session import SessionLayer, StandingOf
from agent_runtime_ref.agent.steps import Steps
from agent_runtime_ref.agent.tools import Tool, Tools, recall_tool
from agent_runtime_ref.background import (
    BackgroundWorker,
    Curation,
    Proposer,
    Turn,
    conversation_of,
    taken_over,
)
from agent_runtime_ref.background.places import pending_folder
from agent_runtime_ref.config import AgentSettings, Settings, load_settings
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.arguments import each_of
from agent_runtime_ref.contracts.caller import require_text
from agent_runtime_ref.enforcement.runs import Built, Run
from agent_runtime_ref.errors import (
    DecisionLogError,
    DocumentTypeError,
    DocumentValueError,
    GovernanceError,
    PolicyDeniedError,
    SessionStateError,
    StoreError,
)
from agent_runtime_ref.preferences import PreferenceStore, in_session
from agent_runtime_ref.recall.render import render_remote_profile
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.session_state import Sessions, TurnConstraints, in_turn
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.telemetry.agent_spans import describe_turn, turn_failed, turn_span
from agent_runtime_ref.telemetry.turns import Told, inside

__all__ = ["MESSAGE_CHARACTERS_MAX", "AgentRuntime"]

# What a turn keeps of a message is one memory, and that is how large a memory's content may be.
MESSAGE_CHARACTERS_MAX = 65_536
CONVERSATIONS_MAX = 10_000  # whose beginning is remembered; an older one begins again, with its profile


class AgentRuntime:
    """Runs turns over governed memory. Thread-safe; a context manager, or call `close`."""

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        settings: AgentSettings,
        model: Model,
        worker: BackgroundWorker,
        session: SessionLayer,
        preferences: PreferenceLayer,
        tools: Sequence[Tool] = (),
        owned: ExitStack | None = None,
    ) -> None:
        """Put a runtime together from its parts; `open` does this from settings.

        `owned` holds what is closed with it.

        Raises:
            DocumentTypeError: `model` is none, or one of `tools`.
            UsageError: two tools have one name.
        """
        require_model(model)
        self.memory = memory
        self._settings = settings
        self._model_name = model.name
        self._worker = worker
        self._session = session
        self._preferences = preferences
        self._owned = ExitStack() if owned is None else owned
        self._steps = Steps(model, Tools([recall_tool(memory), preferences.tool(), *tools]), settings)
        self._static = (Item.of("instructions", settings.instructions),)
        self._begun: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._lock = Lock()
        self._closed = False

    @classmethod
    def open(
        cls,
        memory: GovernedMemory | None = None,
        config: str | Path | Settings | None = None,
        model: Model | None = None,
        *,
        tools: Sequence[Tool] = (),
        curation: Curation | None = None,
        propose: Proposer = conversation_of,
        sessions: Sessions | None = None,
        preferences: PreferenceStore | None = None,
        standing: StandingOf | None = None,
    ) -> Self:
        """Return a runtime, and take up the background work of processes that died over the same store.

        `memory` is the caller's to close; without one it is opened as `config` says (a runtime.yaml, else the
        environment and the defaults). `model` takes the place of the configured one. `sessions` say what the
        user asked for in a thread (else those of the folder that the environment names), `preferences` what
        he always or never wants (else those of the address that the environment names, else this memory's),
        which `standing` replaces for what is enforced; both are shown and enforced in every turn, and
        `curation` adds to them behind the reply, the curator's own where none is named. Exchanges are kept
        in the thread as well where `sessions` are named. Unless `curation` is replaced, a turn is also held
        to what its own message says by the rules, before anything of it is kept.

        Raises:
            DocumentError, UsageError: the settings cannot be used, or `model` or one of `tools` is none.
            StoreError, BundleError: the memory cannot be opened, or pending work not be kept.
        """
        tools = tuple(each_of("tools", tools, Tool))
        settings = config if isinstance(config, Settings) else load_settings(config)
        chosen = model_of(settings.agent) if model is None else require_model(model)
        owned = ExitStack()
        try:
            opened = owned.enter_context(GovernedMemory.from_settings(settings)) if memory is None else memory
            if preferences is None:
                preferences = owned.enter_context(preferences_over(opened))
            liked = PreferenceLayer(preferences)
            # Who replaces the curation says what is heard, and not the rules beside it.
            session = SessionLayer(
                sessions or Sessions(opened), standing or liked.standing, hears=curation is None
            )
            if curation is None:
                curation = curator_over(opened, session.sessions, preferences)
            worker = worker_over(opened, curation, preferences, exchanges=sessions, propose=propose)
            runtime = cls(
                opened,
                settings=settings.agent,
                model=chosen,
                worker=worker,
                session=session,
                preferences=liked,
                tools=tools,
                owned=owned,
            )
            _take_over(worker, pending_folder(opened))  # last: it starts a thread and holds files
            return runtime
        except BaseException:
            owned.close()
            raise

    def run(self, message: str, *, caller: Caller, purpose: str = "answer_generation") -> TurnResult:
        """Return what a message comes to; a refusal and a failure are results, with their status.

        Raises:
            DocumentError: the message is no text, is blank or too long; nothing was done.
            DecisionLogError: what was done could not be written down, so nothing leaves.
            StoreError: the runtime or its memory is closed.
        """
        self._check(message)
        told = Told()
        with inside(told), turn_span():
            run = self.memory.begin_run(
                message, caller=caller, purpose=purpose, limit=self._settings.retrieved_limit
            )
            describe_turn(told.events())
            if not run.is_admitted:
                refused = str(run.failure or PolicyDeniedError(run.decision))
                status = "denied" if run.failure is None else "failed"
                return self._result(run, Context(), told, status=status, error=refused)
            return self._admitted(message, run, told, purpose)

    def drain(self, timeout_seconds: float | None = None) -> bool:
        """Wait for the background work, and return whether all of it is done."""
        return self._worker.drain(timeout_seconds)

    def close(self) -> None:
        """Do the background work that is left, and give up what `open` opened."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        with self._owned:
            self._worker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- one turn ------------------------------------------------------------------------------------------

    def _admitted(self, message: str, run: Run, told: Told, purpose: str) -> TurnResult:
        """Answer an admitted turn, write down how it ended, and hand it to the worker."""
        context, reply, failure = Context(static=self._static), "", None
        # Asked once: what is asked for behind a forgetting is of somebody new. That of nobody, which it stays
        # where the store does not say, has the words of the turn kept nowhere.
        mark = ""
        try:
            mark = self.memory.subject_mark(caller=run.caller)
            asked = self._gather(message, context, run, purpose)
            self._keep(self._turn(message, "", "interrupted", run, purpose, context, mark), run, context)
            with in_turn(asked.state, asked.standing), in_session(str(run.caller.session_id)):
                reply = self._steps.reply(message, context, run, purpose=purpose)
        except DecisionLogError:
            # Nothing more can be told now, so no reply leaves; when the log is there again it is told.
            turn = self._turn(message, "", "failed", run, purpose, context, mark)
            self._worker.submit(turn, told=told, untold=self._keep(turn, run, context))
            raise
        except Exception as error:
            failure = error
            if not isinstance(error, GovernanceError):  # whose sentence is the result's
                diagnostics.failed("turn_failed", error)
        except BaseException as error:
            self._ended(message, "", "cancelled", run, purpose, context, mark, told, error)
            raise
        status = "complete" if failure is None else "failed"
        self._ended(message, reply, status, run, purpose, context, mark, told, failure)
        said = None if failure is None else _sentence(failure)
        return self._result(run, context, told, status=status, reply=reply, error=said)

    def _gather(self, message: str, context: Context, run: Run, purpose: str) -> TurnConstraints:
        """Fill the layers that are there before the model is asked; returns what the turn is held to."""
        if not self._worker.settle(run.caller, self._settings.thread_wait_ms / 1000):
            # A turn that does not know what was said before in its thread would be freer, not safer.
            raise SessionStateError("what was said before in this conversation is not kept yet; ask again")
        result = run.retrieve()
        context.excluded = dict(result.exclusions)
        context.retrieved, context.left_out = retrieved_items(result, self._settings.retrieved_bytes_max)
        asked = self._session.constraints(run.caller, purpose)
        # Where nothing is wanted for good, nothing of it is relevant either, and no read is asked for.
        liked = self._preferences.items(message, run.caller) if asked.standing else ()
        context.session = (*self._session_items(run, purpose), *liked, *self._session.items(asked))
        return self._session.heard(message, asked)

    def _session_items(self, run: Run, purpose: str) -> tuple[Item, ...]:
        """Return what a conversation begins with; nothing where it has begun already."""
        caller = run.caller
        assert caller.session_id is not None
        if not self._begins((caller.tenant_id, caller.own_subject, caller.session_id)):
            return ()
        try:
            profile = self.memory.latest_profile(caller=caller, purpose=purpose)
        except PolicyDeniedError:
            return ()  # on record, and a turn can do without
        if profile is None:
            return ()
        return (Item("profile", profile.content, render_remote_profile(profile), (profile.memory_id,)),)

    def _begins(self, conversation: tuple[str, str, str]) -> bool:
        with self._lock:
            known = conversation in self._begun
            self._begun[conversation] = None
            self._begun.move_to_end(conversation)
            while len(self._begun) > CONVERSATIONS_MAX:
                self._begun.popitem(last=False)
        return not known

    def _ended(
        self,
        message: str,
        reply: str,
        status: str,
        run: Run,
        purpose: str,
        context: Context,
        mark: str,
        told: Told,
        failure: BaseException | None,
    ) -> None:
        """Write down how a turn ended, first for the worker of whatever process, then in the log."""
        turn = self._turn(message, reply, status, run, purpose, context, mark)
        payload = self._keep(turn, run, context)
        try:
            if failure is None:
                run.completed(payload)
            else:
                turn_failed(failure)
                run.failed(failure, payload, status)
        except StoreError:
            self._worker.submit(turn, told=told, untold=payload)
            raise
        self._worker.submit(turn, told=told)

    def _keep(self, turn: Turn, run: Run, context: Context) -> dict[str, Any]:
        """Write a turn down where it outlives this process, and return what is told of its context."""
        payload = run.built_payload(_built(context))
        try:
            self._worker.pending.put(turn, payload)
        except StoreError as error:
            if turn.status == "interrupted":
                raise  # before the model is asked the turn may still fail; after, the work must be done
            diagnostics.error("pending_work_not_kept", reason=type(error).__name__)
        return payload

    def _turn(
        self, message: str, reply: str, status: str, run: Run, purpose: str, context: Context, mark: str
    ) -> Turn:
        return Turn(
            turn_id=run.turn_id,
            caller=run.caller,
            purpose=purpose,
            message=message,
            reply=reply,
            status=status,
            at_us=run.at_us,
            decision_id=run.decision.decision_id,
            mark=mark,
            tools=tuple(dict.fromkeys(item.kind for item in context.tools if item.status == "ok")),
            log_seq=run.log_seq,
        )

    def _result(
        self,
        run: Run,
        context: Context,
        told: Told,
        *,
        status: str,
        reply: str = "",
        error: str | None = None,
    ) -> TurnResult:
        was_built = run.is_admitted
        text = context.rendered() if was_built else ""
        caller, decision_id = run.caller, run.decision.decision_id
        assert caller.trace_id is not None
        assert caller.session_id is not None
        budget = self._settings.retrieved_bytes_max
        return TurnResult(
            reply=reply,
            status=status,
            layers=context.layers,
            manifest=context.manifest(budget=budget, decision_id=decision_id) if was_built else None,
            context=text,
            context_digest=run.digest(text) if was_built else None,
            decision=run.decision,
            error=error,
            model=self._model_name,
            turn_id=run.turn_id,
            trace_id=caller.trace_id,
            session_id=caller.session_id,
            told=told,
        )

    def _check(self, message: object) -> None:
        if self._closed:
            raise StoreError(self.memory.store_url, "the runtime is closed; open it again")
        if not isinstance(message, str):
            raise DocumentTypeError("message: must be a string", path="message")
        require_text("message", message)
        if not message.strip() or "\x00" in message:
            raise DocumentValueError("message: must not be blank or contain a NUL character")
        if len(message) > MESSAGE_CHARACTERS_MAX:
            raise DocumentValueError(f"message: must be at most {MESSAGE_CHARACTERS_MAX} characters long")


def _take_over(worker: BackgroundWorker, folder: Path | None) -> None:
    """Have the worker take up what processes that died left in `folder`; where that fails, it ends."""
    if folder is None:
        return
    try:
        worker.take_over(taken_over(folder))
    except BaseException:
        worker.close()
        raise


def _built(context: Context) -> Built:
    layers: Sequence[Layer] = context.layers
    return Built(
        items={layer.name: len(layer.items) for layer in layers},
        record_ids={layer.name: layer.record_ids for layer in layers if layer.record_ids},
        left_out=[one.record_id for one in context.left_out],
        text=context.rendered(),
    )


def _sentence(failure: Exception) -> str:
    """Return what a user may be told: a sentence of ours, else the type alone, since others quote content."""
    return (
        str(failure) if isinstance(failure, GovernanceError) else f"internal error: {type(failure).__name__}"
    )
