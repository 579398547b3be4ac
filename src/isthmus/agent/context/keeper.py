"""Keeps a conversation inside its model's context window: compacts before it is full, and once when it was too long.

One keeper serves one turn.
"""

from isthmus.agent.context.compaction import WORTH_SHARE, NotCompactedError, compact
from isthmus.agent.context.size import context_window, request_tokens
from isthmus.agent.turn import AgentTurn
from isthmus.models.base import ChatModel, ModelError, ModelRequest

AGAIN_SHARE = 1.1
"""After a compaction by itself came to nothing, how much the conversation grows until the next try."""


class ContextKeeper:
    """Compacts the conversation of one turn; ``share`` is how much of the context window a request may take."""

    def __init__(self, turn: AgentTurn, share: float) -> None:
        self._turn = turn
        self._share = share
        self._failed_at = 0

    async def before(self, model: ChatModel, request: ModelRequest) -> None:
        """Compact when ``request``, the next one, would take more than its share of the model's context window.

        What cannot be compacted stays as it is: the provider has the last word.
        """
        window = context_window(model)
        tokens = request_tokens(self._turn.session, request)
        if tokens <= max(window * self._share, self._failed_at * AGAIN_SHARE):
            return
        try:
            await compact(self._turn, model, window, is_worth_it=WORTH_SHARE)
        except (NotCompactedError, ModelError):
            self._failed_at = tokens

    async def after(self, model: ChatModel, error: ModelError) -> None:
        """Compact because the provider refused the last request as too long.

        Raises:
            ModelError: it cannot be made shorter; with both reasons in its text.
        """
        try:
            await compact(self._turn, model, context_window(model))
        except (NotCompactedError, ModelError) as why:
            raise still_too_long(error, str(why)) from error


def still_too_long(error: ModelError, why: str) -> ModelError:
    """Return the error of a conversation that is too long and cannot be made shorter."""
    advice = "Start a new session, or ask for less at once."
    return ModelError(error.kind, f"{error} It could not be made short enough: {why} {advice}", status=error.status)
