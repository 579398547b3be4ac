"""What a tool may ask in the middle of its work: a person, or the session's own model with a person's consent.

The tool yields one of these and is taken up again when it has its answer; meanwhile it waits in :meth:`AskPerson.reply`
and nothing polls it. Deliberately not here: how a person is asked, and who may allow what (the agent's).
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from isthmus.codec import JsonObject
from isthmus.development_tool import ConfirmationOption, FileDiff, GenericDetails
from isthmus.media import Media

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """What a person is asked. ``kind`` names it, as a tool's name does: ``elicitation``, ``sampling``.

    ``asker`` is who asks, such as the name of an MCP server; ``about`` is what is asked, as data. ``accepting`` are the
    options that give the asker what it wants; any other refuses. ``always``, one of these, also says yes to all later
    questions of this kind and asker in the session.
    """

    kind: str
    asker: str
    description: str
    details: GenericDetails | FileDiff
    options: tuple[ConfirmationOption, ...]
    accepting: frozenset[str]
    about: JsonObject
    always: str | None = None


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of one side of a conversation that a model is asked to go on with."""

    role: Literal["user", "assistant"]
    text: str
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """What the session's model is asked, apart from the session's own conversation. ``maximum_tokens`` are output's."""

    system: str
    messages: tuple[PromptMessage, ...]
    maximum_tokens: int


@dataclass(frozen=True, slots=True)
class Chosen:
    """A person's answer; ``content`` is the document as that person changed it."""

    option_id: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered: ``model`` is its name, ``is_cut`` that it came to the limit of its length."""

    text: str
    model: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Nobody answered; ``reason`` says why, for whoever asks. ``is_refusal``: nobody may be asked here."""

    reason: str
    is_refusal: bool = False


Reply: TypeAlias = Chosen | ModelAnswer | NoAnswer


class AskPerson:
    """A question to a person, and the place for its answer. The first answer counts."""

    def __init__(self, question: PersonQuestion) -> None:
        self.question = question
        self.on_withdrawn: Callable[[], None] | None = None
        """Called once when the question is withdrawn: it need not be shown any longer."""
        self._reply: Reply | None = None
        self._has_reply = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """No answer is known yet."""
        return self._reply is None

    @property
    def withdrawn(self) -> str:
        """Why there is no answer; empty while there may be one, and when there is."""
        return self._reply.reason if isinstance(self._reply, NoAnswer) else ""

    def give(self, reply: Reply) -> None:
        """Answer it."""
        if self._reply is None:
            self._reply = reply
            self._has_reply.set()

    def withdraw(self, reason: str) -> None:
        """Take the question back, or give it up."""
        if self._reply is None:
            self.give(NoAnswer(reason))
            if self.on_withdrawn is not None:
                self.on_withdrawn()

    async def reply(self) -> Reply:
        """The answer, when there is one; whoever asks says how long it waits by withdrawing."""
        await self._has_reply.wait()
        return self._reply or NoAnswer("There was no answer")


class AskModel(AskPerson):
    """A request to the session's own model, made when the person consents, or has before.

    Its answer is a :class:`ModelAnswer`, a :class:`Chosen` that refuses, or :class:`NoAnswer`.
    """

    def __init__(self, question: PersonQuestion, prompt: ModelPrompt) -> None:
        super().__init__(question)
        self.prompt = prompt
