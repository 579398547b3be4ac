"""What a running tool may ask: the user, or with the user's consent the model of the session.

How the user is asked, and who may allow what, is the agent's.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from isthmus.development_tool import ConfirmationOption, FileDiff, GenericDetails
from isthmus.encoding.codec import JsonObject
from isthmus.media import Media

if TYPE_CHECKING:
    import asyncio


@dataclass(frozen=True, slots=True)
class SamplingMessage:
    """A message of one side of a conversation that a model is asked to continue."""

    role: Literal["user", "assistant"]
    text: str
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """A request to the session's model, apart from the session's own conversation; at most ``maximum_tokens`` come
    back."""

    system: str
    messages: tuple[SamplingMessage, ...]
    maximum_tokens: int


@dataclass(frozen=True, slots=True)
class UserQuestion:
    """A question to the user. ``kind`` names it, as a tool's name does: ``elicitation``, ``sampling``.

    ``asker`` is who asks, such as the name of an MCP server; ``about`` is what is asked, as data. ``accepting`` are the
    options that give the asker what it wants; any other refuses. ``always``, one of these, also says yes to all later
    questions of this kind and asker in the session. With ``prompt`` the user's consent is asked to put that to the
    model, which then answers.
    """

    kind: str
    asker: str
    description: str
    details: GenericDetails | FileDiff
    options: tuple[ConfirmationOption, ...]
    accepting: frozenset[str]
    about: JsonObject
    always: str | None = None
    prompt: ModelPrompt | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The user's answer; ``content`` is the document as the user changed it."""

    option_id: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model; ``model`` is its name, ``is_cut`` whether it reached its maximum length."""

    text: str
    model: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """No answer came; ``reason`` is for the asker. ``is_refusal``: nobody may be asked here."""

    reason: str
    is_refusal: bool = False


Reply: TypeAlias = Chosen | ModelAnswer | NoAnswer


class AskUser(Protocol):
    """Asks the user in the middle of a call."""

    async def __call__(self, question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
        """Put a question, and wait for its reply.

        Cancelling the wait takes the question back; so does the result of ``withdrawn``, which is the reason.
        """
        ...


async def nobody_to_ask(question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
    """Decline a question where nobody can be asked."""
    return NoAnswer("Nobody can be asked here", is_refusal=True)
