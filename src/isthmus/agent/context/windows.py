"""Context windows that providers stated in a refusal: they count before what is known of a model.

A session keeps them in the journal, and :class:`LearnedWindows` for the other sessions of the process. If something
else becomes known of the model, such as another setting of a local server, a number that was learnt before is void.
"""

from isthmus.agent.session.session import Session
from isthmus.agent.session.size import context_window
from isthmus.agent.session.turn import AgentTurn
from isthmus.internal_events import WindowLearned
from isthmus.models.port.base import ChatModel, RefusedSize, key_of

SMALLEST_SHARE = 0.5
"""Minimum share of a stated window that is left if the provider counts more tokens than we do."""


def window_of(session: Session, model: ChatModel) -> int:
    """Return the context window of a model in tokens: as its provider said in this session, otherwise as known."""
    assumed = context_window(model)
    learned = session.windows.get(key_of(model))
    return learned.tokens if learned is not None and learned.assumed == assumed else assumed


def learnt_window(size: RefusedSize, sent: int) -> int | None:
    """Return the window that a refusal states, in tokens as we count them; None if it states none.

    ``sent`` is our count of the refused request. Where the provider counts more, the window is smaller for us.
    """
    if size.limit is None:
        return max(1, sent - size.excess) if size.excess is not None and size.excess < sent else None
    ratio = 1.0 if size.counted is None else min(1.0, sent / max(1, size.counted))
    return int(size.limit * max(ratio, SMALLEST_SHARE))


class LearnedWindows:
    """The windows that sessions of this process have learnt, by model."""

    def __init__(self) -> None:
        self._known: dict[str, WindowLearned] = {}

    async def tell(self, turn: AgentTurn, model: ChatModel) -> None:
        """Have the session of a turn know the window that another one has learnt."""
        known = self._known.get(key_of(model))
        if known is not None and known.assumed == context_window(model) and key_of(model) not in turn.session.windows:
            await turn.emit(known)

    async def learn(self, turn: AgentTurn, model: ChatModel, tokens: int) -> None:
        """Keep a window that the provider of a model has stated."""
        learned = WindowLearned(key_of(model), tokens, context_window(model))
        if turn.session.windows.get(learned.model) != learned:
            self._known[learned.model] = learned
            await turn.emit(learned)
