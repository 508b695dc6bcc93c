"""The parts of a runtime that settings and the environment choose."""

from __future__ import annotations

from agent_runtime_ref.agent.models import Model, OfflineModel
from agent_runtime_ref.background import BackgroundWorker, Curation, Proposer
from agent_runtime_ref.background.places import pending_of
from agent_runtime_ref.config import AgentSettings, ModelSettings
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.runtime import GovernedMemory
from agent_runtime_ref.session_state import Sessions

__all__ = ["curator_over", "model_of", "worker_over"]

_ENDPOINT = "agent.model.endpoint"


def curator_over(memory: GovernedMemory, sessions: Sessions, preferences: PreferenceStore) -> Curation:
    """Return the curator: with the judge that the environment names, else the rules.

    Raises:
        UsageError: the environment names a judge that cannot be asked.
    """
    from agent_runtime_ref.curator import Curator, ModelJudge

    judge = ModelJudge.from_environment()
    return Curator(memory, judge=judge, sessions=sessions, preferences=preferences)


def worker_over(
    memory: GovernedMemory,
    curation: Curation,
    preferences: PreferenceStore,
    *,
    exchanges: Sessions | None,
    propose: Proposer,
) -> BackgroundWorker:
    """Return the worker of a runtime; exchanges are kept where `exchanges` are named."""
    return BackgroundWorker(
        memory,
        curation=curation,
        curated_in=preferences.memory_of,
        exchanges=exchanges,
        propose=propose,
        pending=pending_of(memory),
    )


def model_of(settings: AgentSettings) -> Model:
    """Return the model that the settings name; the offline one where they name no endpoint.

    Raises:
        UsageError: an endpoint without a model or without the key that is named for it, or an address that
            cannot be used; see `ChatEndpoint`.
    """
    import os

    from agent_runtime_ref.errors import UsageError

    chosen = settings.model
    if chosen.endpoint is None:
        return OfflineModel()
    if chosen.name is None:
        from agent_runtime_ref.web_address import endpoint_shown

        raise UsageError(
            f"{endpoint_shown(chosen.endpoint, _ENDPOINT)} serves models by name; "
            "say which in agent.model.name, AGENT_RUNTIME_MODEL_NAME or --model-name"
        )
    from agent_runtime_ref.agent.models.endpoint import EndpointModel
    from agent_runtime_ref.chat_endpoint import ChatEndpoint

    key = os.environ.get(chosen.key_variable) or None
    if key is None and chosen.key_variable != ModelSettings().key_variable:
        raise UsageError(
            f"agent.model.key_variable names {chosen.key_variable}, which is not set; "
            "put the key of the endpoint there, or leave the setting out where it wants none"
        )
    timeout = chosen.timeout_ms / 1000
    return EndpointModel(
        ChatEndpoint(chosen.endpoint, chosen.name, key, timeout, chosen.attempts, setting=_ENDPOINT)
    )
