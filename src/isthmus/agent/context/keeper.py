"""Keeps a conversation within its model's context window: compacts it before it is full, and after a refusal.

One keeper serves one turn.
"""

from isthmus.agent.context.compaction import WORTH_SHARE, NotCompactedError, compact
from isthmus.agent.context.windows import LearnedWindows, learnt_window, window_of
from isthmus.agent.session.compacted_sizes import FULL_SHARE, goes_in_circles, has_grown
from isthmus.agent.session.next_request import request_tokens
from isthmus.agent.session.pruning import PruningPlan, planned_pruning
from isthmus.agent.session.size import context_window, messages_tokens
from isthmus.agent.session.turn import AgentTurn
from isthmus.internal_events import ResultsPruned
from isthmus.models.port.base import WAITED_FOR, ChatModel, ModelError, ModelErrorKind, ModelRequest

AGAIN_SHARE = 1.1
"""Growth factor of the conversation after a failed automatic compaction, before the next attempt."""


class ContextKeeper:
    """Compacts the conversation of one turn; ``share`` is the share of the context window that a request may fill.

    ``windows`` keeps the windows that providers state in refusals.
    """

    def __init__(self, turn: AgentTurn, share: float, windows: LearnedWindows) -> None:
        self._turn = turn
        self._share = share
        self._windows = windows
        self._failed_at = 0

    async def before(self, model: ChatModel, request: ModelRequest) -> None:
        """Make room if ``request``, the next one, would fill more than its share of the model's context window.

        Old tool results are removed if that is enough; otherwise the older part is compacted. The request for its
        summary begins with the conversation as the provider has cached it, so nothing is removed before. If compaction
        fails, or leads nowhere, only old results go. The provider decides whether the conversation is too long, if it
        has not said so before.

        Raises:
            ModelError: the model cannot be reached, or is busy, also after all waits; or the conversation is longer
                than its provider has said that it may be, and cannot be made shorter.
        """
        session = self._turn.session
        await self._windows.tell(self._turn, model)
        window = window_of(session, model)
        tokens = request_tokens(session, request)
        if tokens <= window * self._share:
            return
        if tokens <= self._failed_at * AGAIN_SHARE:
            self._check(model, tokens, window)
            return
        now = messages_tokens(session.messages)
        if tokens <= window * FULL_SHARE and not has_grown(session.conversation.compactions, now, window):
            return  # It was just compacted, and is as short as it can be.
        pruning = planned_pruning(session.messages, window * self._share)
        if pruning is not None and tokens - pruning.freed_tokens <= window * self._share:
            await self._prune(pruning)
            return
        if not goes_in_circles(session.conversation.compactions, window):
            try:
                await compact(self._turn, model, window, request, is_worth_it=WORTH_SHARE)
                return
            except NotCompactedError:
                pass
            except ModelError as error:
                if error.kind in WAITED_FOR:
                    raise  # It was waited for; the next request would wait as long again.
        if pruning is not None:
            tokens -= await self._prune(pruning)
        self._failed_at = tokens
        self._check(model, tokens, window)

    async def after(self, model: ChatModel, request: ModelRequest, error: ModelError) -> None:
        """Make the conversation shorter because the provider refused ``request`` as too long.

        A window that it stated counts from now on, in this session and in later ones of the process.

        Raises:
            ModelError: it cannot be made shorter; the text contains both reasons.
        """
        session = self._turn.session
        tokens = request_tokens(session, request)
        if error.size is not None and (learnt := learnt_window(error.size, tokens)) is not None:
            await self._windows.learn(self._turn, model, learnt)
        window = window_of(session, model)
        pruning = planned_pruning(session.messages, window * self._share)
        if pruning is not None and tokens - await self._prune(pruning) <= window * self._share:
            return
        if goes_in_circles(session.conversation.compactions, window):
            raise still_too_long(
                error, f"{len(session.conversation.compactions)} compactions in a row made too little room."
            )
        try:
            await compact(self._turn, model, window)
        except (NotCompactedError, ModelError) as reason:
            raise still_too_long(error, str(reason)) from error

    async def _prune(self, plan: PruningPlan) -> int:
        """Remove old tool results, and return the number of tokens that this frees."""
        await self._turn.emit(ResultsPruned(plan.count, plan.freed_tokens))
        return plan.freed_tokens

    def _check(self, model: ChatModel, tokens: int, window: int) -> None:
        """Check that a conversation that cannot be made shorter may be sent.

        Raises:
            ModelError: the model's provider has said that it may not be so long.
        """
        if tokens <= window * FULL_SHARE or window == context_window(model):
            return
        fixed = max(0, tokens - messages_tokens(self._turn.session.messages))
        raise ModelError(
            ModelErrorKind.CONTEXT_TOO_LONG,
            f"the conversation has about {tokens:,} tokens, and {model.name} takes {window:,}, as its provider said. It"
            f" cannot be made shorter: the system prompt and the tools alone take about {fixed:,}. Use a model with a"
            " larger context window, or fewer tools; or start a new session, and ask for less at a time",
        )


def still_too_long(error: ModelError, reason: str) -> ModelError:
    """Return the error of a conversation that is too long and cannot be made shorter."""
    advice = "Start a new session, or ask for less at a time."
    return ModelError(error.kind, f"{error} It could not be made short enough: {reason} {advice}", status=error.status)
