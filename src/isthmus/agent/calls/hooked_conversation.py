"""The conversation of a session beside the hooks around its model requests.

What hooks add is kept in the conversation. What they change there empties the provider's prompt cache, whose price the
user is told once in a session.
"""

from collections.abc import Sequence

from isthmus.agent.context.switch_price import reread_text
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentThought
from isthmus.events import Thought
from isthmus.internal_events import HOOK_MESSAGE, CacheEmptied, ContextNote
from isthmus.models.port.base import ChatModel, Message, ModelRequest, key_of


class TurnConversation:
    """The conversation of one turn's session."""

    def __init__(self, turn: AgentTurn) -> None:
        self._turn = turn
        self._last: tuple[str, Sequence[Message], Sequence[Message]] | None = None
        """The last request: its model, its messages without the hooks, and as they were sent."""

    async def tell(self, text: str) -> None:
        """Keep a text in the conversation, behind the user's last message."""
        await self._turn.emit(ContextNote(HOOK_MESSAGE, text))

    async def sent(self, model: ChatModel, original: ModelRequest, request: ModelRequest) -> None:
        """Note a request; tell the user once that a hook has changed what was sent before."""
        last, self._last = self._last, (key_of(model), original.messages, request.messages)
        if last is None or last[0] != key_of(model) or self._turn.session.is_cache_emptied:
            return
        if not _begins(original.messages, last[1]) or _begins(request.messages, last[2]):
            return
        text = f"a BeforeModel hook changes messages that were sent before: {reread_text(self._turn.session, model)}"
        await self._turn.emit(Thought(AgentThought(f"Hook: {text}", "")), CacheEmptied())


def _begins(messages: Sequence[Message], before: Sequence[Message]) -> bool:
    """Return whether messages begin with others, of which the last one may have got more parts."""
    if not before:
        return True
    last = len(before) - 1
    if len(messages) <= last or messages[:last] != before[:last] or messages[last].role != before[last].role:
        return False
    return messages[last].parts[: len(before[last].parts)] == before[last].parts
