"""Questions of a running tool to the user or, with the user's consent, to the model of the session.

The agent decides how the user is asked and what may be allowed.
"""

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from isthmus.development_tool import ConfirmationOption, FileDiff, GenericDetails
from isthmus.encoding.codec import JsonObject
from isthmus.media import Media
from isthmus.record import record

if TYPE_CHECKING:
    import asyncio


@record
class SamplingMessage:
    """A message of one side of a conversation that a model is to continue."""

    role: Literal["user", "assistant"]
    text: str
    media: tuple[Media, ...] = ()


@record
class ModelPrompt:
    """A request to the session's model outside the session's conversation, for at most ``maximum_tokens`` of output."""

    system: str
    messages: tuple[SamplingMessage, ...]
    maximum_tokens: int


@record
class UserQuestion:
    """A question to the user. ``kind`` names it like a tool: ``elicitation``, ``sampling``.

    ``asker`` is the name of the sender, such as an MCP server; ``about`` is the question as data. ``accepting`` are the
    options that grant the request; any other refuses it. ``always``, one of them, also grants all later questions of
    this kind and asker in the session. With ``prompt`` the user is asked for consent to send it to the model, which
    then answers.
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


@record
class Chosen:
    """The user's answer; ``content`` is the document as the user changed it."""

    option_id: str
    content: str | None = None


@record
class ModelAnswer:
    """The answer of a model; ``model`` is its name, ``is_cut`` whether it reached its maximum length."""

    text: str
    model: str
    is_cut: bool = False


@record
class NoAnswer:
    """Absence of an answer; ``reason`` is for the asker. ``is_refusal``: no user may be asked here."""

    reason: str
    is_refusal: bool = False


Reply: TypeAlias = Chosen | ModelAnswer | NoAnswer


class AskUser(Protocol):
    """Function that asks the user during a call."""

    async def __call__(self, question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
        """Ask a question and wait for the reply.

        Cancelling the wait withdraws the question; so does a result of ``withdrawn``, which is the reason.
        """
        ...


async def no_user_to_ask(question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
    """Decline a question because no user can be asked."""
    return NoAnswer("No user can be asked here", is_refusal=True)
