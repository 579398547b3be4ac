"""Keeps a conversation within its model's context window: compacts it before it is full, and after a refusal.

One keeper serves one turn.
"""

from isthmus.agent.context.compaction import WORTH_SHARE, NotCompactedError, compact
from isthmus.agent.context.pruning import planned_pruning
from isthmus.agent.context.size import context_window, estimate_tokens, messages_tokens, tool_tokens
from isthmus.agent.session import Session
from isthmus.agent.turn import AgentTurn
from isthmus.internal_events import ResultsPruned
from isthmus.models.base import WAITED_FOR, ChatModel, ModelError, ModelRequest

AGAIN_SHARE = 1.1
"""Growth factor of the conversation after a failed automatic compaction, before the next attempt."""


class ContextKeeper:
    """Compacts the conversation of one turn; ``share`` is the share of the context window that a request may fill."""

    def __init__(self, turn: AgentTurn, share: float) -> None:
        self._turn = turn
        self._share = share
        self._failed_at = 0

    async def before(self, model: ChatModel, request: ModelRequest) -> None:
        """Make room if ``request``, the next one, would fill more than its share of the model's context window.

        Old tool results are removed first, which costs nothing; if that is not enough, the older part is compacted.
        If compaction fails, the conversation stays as it is, and the provider decides whether it is too long.

        Raises:
            ModelError: the model cannot be reached, or is busy, also after all waits.
        """
        window = context_window(model)
        tokens = request_tokens(self._turn.session, request)
        if tokens <= max(window * self._share, self._failed_at * AGAIN_SHARE):
            return
        if (plan := planned_pruning(self._turn.session.messages, window * self._share)) is not None:
            await self._turn.emit(ResultsPruned(plan.count, plan.freed_tokens))
            tokens -= plan.freed_tokens
            if tokens <= window * self._share:
                return
        try:
            await compact(self._turn, model, window, is_worth_it=WORTH_SHARE)
        except NotCompactedError:
            self._failed_at = tokens
        except ModelError as error:
            if error.kind in WAITED_FOR:
                raise  # It was waited for; the next request would wait as long again.
            self._failed_at = tokens

    async def after(self, model: ChatModel, error: ModelError) -> None:
        """Compact because the provider refused the last request as too long.

        Raises:
            ModelError: it cannot be made shorter; the text contains both reasons.
        """
        try:
            await compact(self._turn, model, context_window(model))
        except (NotCompactedError, ModelError) as reason:
            raise still_too_long(error, str(reason)) from error


def still_too_long(error: ModelError, reason: str) -> ModelError:
    """Return the error of a conversation that is too long and cannot be made shorter."""
    advice = "Start a new session, or ask for less at a time."
    return ModelError(error.kind, f"{error} It could not be made short enough: {reason} {advice}", status=error.status)


def request_tokens(session: Session, request: ModelRequest) -> int:
    """Return the tokens of the session's next request: those measured for the last one, plus an estimate of the rest.

    If nothing was measured since the last compaction, everything is estimated, including the prompt and the tools.
    """
    if session.measured_messages:
        return session.measured_tokens + messages_tokens(session.messages[session.measured_messages :])
    tools = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in request.tools)
    return estimate_tokens(request.system) + tools + messages_tokens(session.messages)
