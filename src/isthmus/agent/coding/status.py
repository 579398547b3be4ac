"""State of a session that no event tells: the mode, the model and its effort in force, and how full its context is."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from isthmus.agent.approval.session_policy import policy_for
from isthmus.agent.context.windows import window_of
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.context_parts import context_parts
from isthmus.agent.session.session import Session
from isthmus.models.port.base import DEFAULT_EFFORT, Effort, ModelError, nearest_effort
from isthmus.session_status import US_DOLLARS, Cost, SessionStatus, TokensUsed
from isthmus.task_view import total_usage, unpriced_models
from isthmus.text.money import in_dollars


async def session_status(session: Session, resources: AgentResources, options: AgentOptions) -> SessionStatus:
    """Return the state of a session, as far as it is known."""
    refusal = await resources.yolo_refusal_of(Path(session.workspace))
    policy = policy_for(options.policy, session.settings, options.settings_rule, yolo_refusal=refusal)
    try:
        model = await resources.open_model(session.choices.model)
    except ModelError:  # its key is gone, for example; the next prompt will say it
        model = None
    levels = model.capabilities.efforts if model is not None else ()
    status = SessionStatus(
        policy.mode.value,
        model=session.choices.model or (model.name if model is not None else None),
        effort=_effort(session, options, levels),
        cost=_cost(session),
        efforts=tuple(level.value for level in levels),
        cached_share=session.statistics.cached_share,
        unpriced_models=unpriced_models(session.statistics.models) or None,
        tokens_used=_tokens(session),
    )
    if (used := session.conversation.tokens) is None:
        return status
    window = window_of(session, model) if model is not None else None
    parts = context_parts(used, session.conversation.messages)
    return replace(status, context_tokens=used, context_window=window, context_parts=parts)


def _tokens(session: Session) -> TokensUsed | None:
    """Return the tokens that the requests of the session have used; None without any request."""
    whole = total_usage(session.statistics.models.values())
    return TokensUsed(whole.input_tokens, whole.cached_tokens, whole.output_tokens) if whole.requests else None


def _cost(session: Session) -> Cost | None:
    """Return what the session has cost; None if no request of it has a known price."""
    whole = total_usage(session.statistics.models.values())
    return Cost(in_dollars(whole.cost), US_DOLLARS) if whole.requests > whole.unpriced else None


def _effort(session: Session, options: AgentOptions, levels: Sequence[Effort]) -> str | None:
    """Return the effort in force for a model with these levels; None if it has none."""
    if not levels:
        return None
    chosen = Effort(session.choices.effort) if session.choices.effort is not None else options.effort
    sent = None if chosen is None else nearest_effort(chosen, levels)
    return DEFAULT_EFFORT if sent is None else sent.value
