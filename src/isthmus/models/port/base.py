"""The ChatModel port: the agent's requests to a language model, and the model's answers.

Nothing here is specific to a provider. Data that a provider wants back unchanged (thought signatures, reasoning items,
unknown blocks) is kept as :class:`ProviderState` or :class:`Opaque`, and is replayed only to the provider that sent it.
This module uses neither I/O nor an SDK.
"""

from collections.abc import AsyncGenerator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, runtime_checkable

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.media import Media
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.models.port.costs import ModelCosts

SESSION_UPDATE = "<session_update>"
"""Beginning of a text in a conversation that tells the model what has changed in its instructions and tools."""
NOT_RUN = "The call was not run: the turn ended before."
"""Result that a model receives for a call that was never run."""


@record
class ProviderState:
    """Data that only ``provider`` understands and wants back with its part (e.g. a thought signature)."""

    provider: str
    data: JsonObject


@record
class Text:
    """Text of either side."""

    text: str
    state: ProviderState | None = None


@record
class ModelThought:
    """A thought of the model; ``text`` is empty if only a signature was received."""

    text: str
    state: ProviderState | None = None


@record
class ToolRequest:
    """A model's request for one tool call.

    ``id`` is unique within the conversation: the provider's own id if it sends one, otherwise a generated one.
    ``invalid`` is why the call cannot be made; ``arguments`` is empty if they were not a JSON object.
    """

    id: str
    name: str
    arguments: JsonObject
    state: ProviderState | None = None
    invalid: str | None = None


@record
class ModelToolResult:
    """The result of a tool call as the model receives it; ``media`` is its content other than text."""

    id: str
    name: str
    content: str
    is_error: bool = False
    media: tuple[Media, ...] = ()


@record
class Opaque:
    """An unknown part, kept whole; replayed to the same provider, left out for others."""

    provider: str
    raw: JsonObject


Part: TypeAlias = Text | ModelThought | ToolRequest | ModelToolResult | Media | Opaque
"""A part of a message. Only messages of the user contain Media, beside the text to which they belong."""


@record
class Message:
    """One turn of one side. Tool results are parts of a user message."""

    role: Literal["user", "assistant"]
    parts: tuple[Part, ...]


@record
class FreeForm:
    """Form of a tool whose input is one text: ``argument`` is its name in JSON, ``grammar`` the text's, for Lark."""

    argument: str
    grammar: str


@record
class ToolSpec:
    """A tool as the model sees it; ``parameters`` is a JSON schema of type object that every provider accepts.

    ``full_parameters`` is the schema for providers that accept all of JSON Schema (draft 2020-12): it may contain
    ``$schema``, ``$defs`` with references to them, and ``additionalProperties``. None if the schemas are the same.
    ``free_form`` is for providers with tools whose input is a text; None if the model is to send JSON.
    """

    name: str
    description: str
    parameters: JsonObject
    full_parameters: JsonObject | None = None
    free_form: FreeForm | None = None

    @property
    def json_schema(self) -> JsonObject:
        """The full schema of the parameters."""
        return self.parameters if self.full_parameters is None else self.full_parameters


class Effort(StrEnum):
    """Amount of thinking before an answer, in ascending order. A model has some of them."""

    MINIMAL = "minimal"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    XHIGH = "xhigh"
    MAX = "max"


USUAL_EFFORTS: Final = (Effort.LOW, Effort.MEDIUM, Effort.HIGH)
"""Levels that a model is taken to have if nothing is known of it."""


def nearest_effort(effort: Effort, levels: Sequence[Effort]) -> Effort | None:
    """Return the effort if it is one of the levels, else the next lower one, else the lowest; None without levels."""
    order = list(Effort)
    known = sorted(levels, key=order.index)
    lower = [level for level in known if order.index(level) <= order.index(effort)]
    return lower[-1] if lower else next(iter(known), None)


DEFAULT_EFFORT: Final = "default"
"""Name of the effort that the settings, or else the provider, decide."""
EFFORTS: Final = (*(effort.value for effort in Effort), DEFAULT_EFFORT)
"""Names of the efforts that users choose."""


class ToolChoice(StrEnum):
    """Whether the model may call tools, must call one, or must not."""

    AUTO = "auto"
    ANY = "any"
    NONE = "none"


@record
class Sampling:
    """Parameters of the choice of words; None leaves one to the provider. Not every model accepts each of them."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


@record
class ModelRequest:
    """Everything a model needs for its next message.

    ``effort`` is how much the model shall think; None leaves that to its provider. ``has_fallback``: another model can
    be asked instead, so that an overload need not be waited out. ``choice`` is about ``tools``, which stay in the
    request even if none may be called: providers require them beside earlier calls. ``is_interactive``: a user reads
    the answers, so that minutes may pass between two requests. ``refused`` are media of the messages that the provider
    has refused before. ``conversation`` is the same in all requests of one, and no provider is sent it as it is.
    ``allowed`` are the names of the tools that may be called; None is all of them. Like ``choice`` it leaves ``tools``
    as they are, with which the part of a request begins that providers cache.
    """

    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_output_tokens: int | None = None
    has_fallback: bool = False
    effort: Effort | None = None
    choice: ToolChoice = ToolChoice.AUTO
    sampling: Sampling = Sampling()
    is_interactive: bool = False
    refused: frozenset[Media] = frozenset()
    conversation: str = ""
    allowed: frozenset[str] | None = None


@record
class Usage:
    """Tokens of one request. ``input`` includes ``cached`` and ``cache_write``; ``output`` includes ``thoughts``.

    ``cache_write`` includes ``cache_write_1h``: what the provider keeps in its cache for an hour. ``cost`` is in
    picodollars, by the prices at the moment of the request; None if a price is not known.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_write: int = 0
    thoughts: int = 0
    cache_write_1h: int = 0
    cost: int | None = None


class Finish(StrEnum):
    """Reason why the model stopped."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"
    SAFETY = "safety"
    OTHER = "other"


@record
class TextDelta:
    """The next piece of the visible text."""

    text: str


@record
class ThoughtDelta:
    """The next piece of the current thought."""

    text: str


@record
class ToolRequestStarted:
    """Start of a tool call, whose arguments are not complete yet."""

    name: str


@record
class Retrying:
    """Failure of a request; try ``attempt`` of ``attempts`` (2 is the second) starts after ``delay`` seconds.

    Items before it are void: the answer starts again from its beginning. With ``is_offline`` the network is away: the
    next try starts as soon as there is a connection, and ``delay`` is the longest wait for one. Another item follows
    then, without ``is_offline``.
    """

    attempt: int
    attempts: int
    delay: float
    reason: str
    is_offline: bool = False


@record
class Done:
    """Last item of a stream: the whole message, to be kept and replayed unchanged.

    ``refused`` are media with which the provider refused the request before it answered without them.
    """

    message: Message
    usage: Usage
    finish: Finish
    raw_finish: str | None = None
    refused: frozenset[Media] = frozenset()


StreamItem: TypeAlias = TextDelta | ThoughtDelta | ToolRequestStarted | Retrying | Done


class ModelErrorKind(StrEnum):
    """Kind of a model's failure, as far as the agent can act on it."""

    AUTHENTICATION = "authentication"
    UNKNOWN_MODEL = "unknown_model"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    CONTEXT_TOO_LONG = "context_too_long"
    SAFETY = "safety"
    EMPTY = "empty"
    INTERRUPTED = "interrupted"
    BAD_REQUEST = "bad_request"
    UNREACHABLE = "unreachable"
    CONFIGURATION = "configuration"


@record
class RefusedSize:
    """Numbers of tokens in the refusal of a request that is too long; None where it says none.

    Attributes:
        limit: maximum size of a request, without what the answer may have.
        counted: size of the refused request.
        excess: part of the refused request that is too much.
    """

    limit: int | None = None
    counted: int | None = None
    excess: int | None = None


WAITED_FOR = frozenset(
    {ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED, ModelErrorKind.UNREACHABLE, ModelErrorKind.INTERRUPTED}
)
"""Kinds of failures that pass with time: a request is repeated after a wait."""


class ModelError(IsthmusError):
    """Failure of a model to give a usable answer, after all useful retries.

    The text is for a user and never contains a key. ``status`` is the HTTP status, if any; ``retry_after`` is in
    seconds; ``final`` is whether another try cannot help although the kind would allow it (a used-up quota). ``size``
    has the numbers of a refusal of a request that is too long, if there are any.
    """

    def __init__(
        self,
        kind: ModelErrorKind,
        message: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        final: bool = False,
        size: RefusedSize | None = None,
    ) -> None:
        super().__init__(message)
        self.size = size
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        self.final = final


@record
class Capabilities:
    """Abilities of a model. ``web_search``: it searches the web.

    Attributes:
        context_window: maximum size of a request in tokens; None if unknown.
        efforts: levels of thinking that change the request, in ascending order.
        default_effort: the level without a choice; empty if only the provider knows it.
        output_limit: maximum size of an answer in tokens; None if unknown.
        effort_empties_cache: whether another effort makes the provider compute the conversation anew.
        end: sentence that the model ends or has ended; empty if nothing is known of it.
        costs: prices of today; None if they are not known.
    """

    context_window: int | None = None
    thoughts: bool = False
    web_search: bool = False
    efforts: tuple[Effort, ...] = USUAL_EFFORTS
    default_effort: str = ""
    output_limit: int | None = None
    end: str = ""
    costs: "ModelCosts | None" = None
    effort_empties_cache: bool = False

    def nearest_effort(self, effort: Effort) -> Effort | None:
        """Return the level that is sent for an effort; None if the model has no levels."""
        return nearest_effort(effort, self.efforts)


@record
class SearchSource:
    """A page of the web that an answer names."""

    title: str
    url: str


@record
class SearchAnswer:
    """Answer to a search of the web: a text with the numbers of its ``sources`` in brackets, counted from 1."""

    text: str
    sources: tuple[SearchSource, ...]
    usage: Usage


@runtime_checkable
class ChatModel(Protocol):
    """A language model.

    ``stream`` yields deltas and ends with exactly one :class:`Done`, or raises :class:`ModelError`. Closing the
    generator, or cancelling the task that reads it, closes the connection before either returns. ``name`` is the
    model's name for users (``gemini-2.5-flash``); ``provider`` is the id of its provider (``gemini``).
    """

    @property
    def name(self) -> str:
        """The model's name at its provider."""
        ...

    @property
    def provider(self) -> str:
        """The id of its provider, such as ``gemini``."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """The model's abilities."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the answer as it is received, and a :class:`Done` at its end.

        Raises:
            ModelError: there is no usable answer after all useful retries.
        """
        ...

    async def aclose(self) -> None:
        """Close the model's connections."""
        ...


def key_of(model: ChatModel) -> str:
    """Return the key under which facts about a model are kept: its provider's id and its name, ``provider:name``."""
    return f"{model.provider}:{model.name}"


@runtime_checkable
class PreparedModel(ChatModel, Protocol):
    """A model that learns from its server what it can do, before its first request."""

    async def prepare(self) -> None:
        """Ask the server; return in any case, within a few seconds."""
        ...


@runtime_checkable
class SearchingModel(ChatModel, Protocol):
    """A model whose provider may search the web for it, if its capabilities say so."""

    async def search(self, query: str) -> SearchAnswer:
        """Search the web; the query alone is sent.

        Raises:
            ModelError: there is no usable answer.
        """
        ...


def text_of(message: Message) -> str:
    """Return the visible text of a message: its joined text parts."""
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def requests_of(message: Message) -> tuple[ToolRequest, ...]:
    """Return the tool calls that a message requests, in order."""
    return tuple(part for part in message.parts if isinstance(part, ToolRequest))
