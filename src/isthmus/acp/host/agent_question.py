"""A question of an agent that waits for its answer, of any kind. Not here: what it asks, and how it is shown."""

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

AnswerT = TypeVar("AnswerT")


class AgentQuestion(ABC, Generic[AnswerT]):
    """A question of an agent; the first answer counts."""

    def __init__(self) -> None:
        self.call_id = ""
        """Id of the call under which it is shown; empty until then."""
        self.on_withdrawn: Callable[[str], None] | None = None
        """Called with the reason when the agent does not wait for the answer any more."""
        self.withdrawn = ""
        """The reason for that; empty while it waits."""
        self.is_lost = False
        """Whether that is because the agent's process has ended."""
        self._answer: asyncio.Future[AnswerT] = asyncio.get_running_loop().create_future()

    @abstractmethod
    def refuses(self, option_id: str) -> bool:
        """Return whether an option refuses what the agent asks for."""

    @abstractmethod
    def refuse(self) -> None:
        """Refuse this question alone, if there is an answer for that."""

    @abstractmethod
    def cancel(self) -> None:
        """Answer that the turn ends."""

    def answer(self, answer: AnswerT) -> None:
        """Give the answer."""
        if not self._answer.done():
            self._answer.set_result(answer)

    def withdraw(self, reason: str, *, is_lost: bool = False) -> None:
        """Note that the agent does not wait any more; ``is_lost``: its process has ended."""
        if not self.withdrawn:
            self.withdrawn, self.is_lost = reason, is_lost
            if self.on_withdrawn is not None:
                self.on_withdrawn(reason)

    async def wait(self) -> AnswerT:
        """Wait for the answer."""
        return await self._answer
