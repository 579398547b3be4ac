"""Gemini over google-genai: the body of a request, the meaning of the streamed chunks, and the connection.

The chunks are read as raw JSON: the SDK's typed parts drop unknown fields, and changing or merging a part invalidates
its thought signature. Parts are returned one by one, unchanged; only neighbouring plain texts without a signature are
joined, and of thoughts only the signatures are returned. Vertex AI is not supported.
https://ai.google.dev/gemini-api/docs/thought-signatures, https://ai.google.dev/api/generate-content
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, assert_never, cast

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text, is_object
from isthmus.encoding.json_text import decode_loosely
from isthmus.media import JPEG, PDF, PNG, WEBP, Media
from isthmus.models.answer_reader import AnswerReader, StreamedAnswer
from isthmus.models.attachments import NO_ATTACHMENTS, Attachment, Attachments
from isthmus.models.catalogue.facts import Thinking
from isthmus.models.catalogue.table import facts_of
from isthmus.models.conversation import in_order, state_for, used_ids
from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.failure import HttpFailure, error_object
from isthmus.models.endpoint.providers import GEMINI
from isthmus.models.fitting import BUDGETS, effort_for, thinking_form
from isthmus.models.port.base import (
    Capabilities,
    Effort,
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    ProviderState,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolChoice,
    ToolRequest,
    ToolRequestStarted,
    Usage,
)
from isthmus.models.port.received import as_count, excerpt, without
from isthmus.models.streaming import ProviderModel, StreamOptions
from isthmus.models.tool_names import NameRule
from isthmus.models.web_search import GeminiSearchReader, SearchReader, gemini_search

if TYPE_CHECKING:
    import httpx2

PROVIDER = GEMINI.id
API_VERSION = "v1beta"
FOREIGN_CALL: JsonObject = {"thoughtSignature": "skip_thought_signature_validator"}
"""Signature of another model's call when a turn continues with Gemini (documented for that case)."""
IN_RESPONSES = frozenset((PNG, JPEG, WEBP, PDF))
"""Media types that Gemini 3 accepts inside a function response."""
FINISH: Mapping[str, Finish] = {
    "STOP": Finish.STOP,
    "MAX_TOKENS": Finish.LENGTH,
    "SAFETY": Finish.SAFETY,
    "RECITATION": Finish.SAFETY,
    "BLOCKLIST": Finish.SAFETY,
    "PROHIBITED_CONTENT": Finish.SAFETY,
    "SPII": Finish.SAFETY,
    "IMAGE_SAFETY": Finish.SAFETY,
}


def thinks(name: str) -> bool:
    """Return whether a model can be asked for its thoughts; other models refuse the request."""
    return _thinking_form(name) is not Thinking.NONE


def _thinking_form(name: str) -> Thinking:
    is_thinking = re.search(r"gemini-(2\.5|[3-9]|\d\d)|gemini-\w+-latest", name) is not None
    usual = Thinking.LEVEL if wants_signatures(name) else Thinking.BUDGET
    return thinking_form(facts_of(PROVIDER, name), usual if is_thinking else Thinking.NONE)


def wants_signatures(name: str) -> bool:
    """Return whether a model refuses calls of the current turn without a signature."""
    return re.search(r"gemini-([3-9]|\d\d)", name) is not None


def takes_media_in_responses(name: str) -> bool:
    """Return whether a function response contains its media; before Gemini 3 they follow it."""
    return wants_signatures(name)


def request_body(request: ModelRequest, name: str, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, Any]:
    """Return the body of `streamGenerateContent`."""
    encoder = _Encoder(name, attachments)
    contents = [encoder.content(message) for message in in_order(request.messages)]
    body: dict[str, Any] = {"contents": [content for content in contents if content["parts"]]}
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        declarations = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in request.tools
        ]
        body["tools"] = [{"functionDeclarations": declarations}]
        if request.choice is not ToolChoice.AUTO:
            calling: dict[str, Any] = {"mode": request.choice.name}
            if request.allowed is not None and request.choice is ToolChoice.ANY:  # the only mode that takes names
                calling["allowedFunctionNames"] = [tool.name for tool in request.tools if tool.name in request.allowed]
            body["toolConfig"] = {"functionCallingConfig": calling}
    generation: dict[str, Any] = {}
    sampling = request.sampling
    for key, value in (("temperature", sampling.temperature), ("topP", sampling.top_p), ("topK", sampling.top_k)):
        if value is not None:
            generation[key] = value
    if request.max_output_tokens is not None:
        generation["maxOutputTokens"] = request.max_output_tokens
    if thinks(name):
        generation["thinkingConfig"] = {"includeThoughts": True, **_thinking(request.effort, name)}
    if generation:
        body["generationConfig"] = generation
    return body


def _thinking(effort: Effort | None, name: str) -> JsonObject:
    """Return how much the model shall think: a level from Gemini 3 on, a number of tokens before."""
    level = effort_for(effort, facts_of(PROVIDER, name))
    match _thinking_form(name):
        case Thinking.LEVEL if level is not None:
            return {"thinkingLevel": level.value}
        case Thinking.BUDGET if level is not None:
            return {"thinkingBudget": BUDGETS[level]}
        case _:
            return {}


class _Encoder:
    """Encoder of the contents of one request, in order, since a result needs the id of its call."""

    def __init__(self, name: str, attachments: Attachments) -> None:
        self._attachments = attachments
        self._foreign: JsonObject = FOREIGN_CALL if wants_signatures(name) else {}
        self._inside = IN_RESPONSES if takes_media_in_responses(name) else frozenset[str]()
        self._wire_ids: dict[str, str | None] = {}

    def content(self, message: Message) -> dict[str, Any]:
        parts = [encoded for part in message.parts for encoded in self._parts(part)]
        return {"role": "user" if message.role == "user" else "model", "parts": parts}

    def _parts(self, part: Part) -> Sequence[Mapping[str, Any]]:
        match part:
            case Text(text, state):
                kept = state_for(PROVIDER, state)
                return [{**kept, "text": text}] if text or kept else ()
            case ModelThought(_, state):
                # The summaries of thoughts are for the user; the signature has the thought itself.
                kept = state_for(PROVIDER, state)
                return [{**kept, "thought": True, "text": ""}] if kept else ()
            case ToolRequest(identity, name, arguments, state):
                is_ours = state is not None and state.provider == PROVIDER
                kept = state_for(PROVIDER, state) if is_ours else self._foreign
                call = {**as_object(kept.get("functionCall")), "name": name, "args": arguments}
                self._wire_ids[identity] = as_text(call.get("id")) or None
                return [{**kept, "functionCall": call}]
            case ModelToolResult():
                return self._result(part)
            case Media():
                sent = self._attachments.of((part,))
                return [_inline(item) for item in sent] or [{"text": self._attachments.note(part)}]
            case Opaque(provider, raw):
                return [raw] if provider == PROVIDER else ()
            case _:
                assert_never(part)

    def _result(self, result: ModelToolResult) -> Sequence[Mapping[str, Any]]:
        """Return all text as one functionResponse, and each of the media as an inlineData part."""
        text = self._attachments.with_notes(result.content, result.media)
        response: dict[str, Any] = {
            "name": result.name,
            "response": {"error" if result.is_error else "output": text},
        }
        if (wire_id := self._wire_ids.get(result.id)) is not None:
            response = {"id": wire_id, **response}
        sent = self._attachments.of(result.media)
        if inside := [_inline(item) for item in sent if item.media_type in self._inside]:
            response["parts"] = inside
        beside = [_inline(item) for item in sent if item.media_type not in self._inside]
        return [{"functionResponse": response}, *beside]


def _inline(attachment: Attachment) -> Mapping[str, Any]:
    return {"inlineData": {"mimeType": attachment.media_type, "data": attachment.data}}


class GeminiReader(AnswerReader):
    """Reader that folds the chunks of one answer."""

    def __init__(self, used_ids: Collection[str] = ()) -> None:
        super().__init__(PROVIDER, used_ids)
        self._parts: list[Part] = []
        self._explanation = ""
        self._blocked = False

    @override
    def feed(self, event: object) -> Sequence[StreamItem] | HttpFailure:
        chunk = as_object(event)
        if "error" in chunk:
            error = error_object(chunk)
            return HttpFailure(as_count(error.get("code")) or None, error)
        self._usage = {**self._usage, **as_object(chunk.get("usageMetadata"))}
        blocked = as_object(chunk.get("promptFeedback"))
        if reason := as_text(blocked.get("blockReason")):
            self._blocked = True
            self._reason, self._explanation = reason, as_text(blocked.get("blockReasonMessage"))
        candidate = as_object(next(iter(as_list(chunk.get("candidates"))), None))
        if reason := as_text(candidate.get("finishReason")):
            self._reason, self._explanation = reason, as_text(candidate.get("finishMessage"))
        shown: list[StreamItem] = []
        for part in as_list(as_object(candidate.get("content")).get("parts")):
            shown += self._take(as_object(part))
        return shown

    def _take(self, part: Mapping[str, Any]) -> Sequence[StreamItem]:
        if not part:
            return ()
        if isinstance(part.get("functionCall"), Mapping):
            request = self._tool_request(part)
            self._parts.append(request)
            return (ToolRequestStarted(request.name),)
        text = part.get("text")
        if not isinstance(text, str):
            self._parts.append(Opaque(PROVIDER, part))
            return ()
        if part.get("thought") is True:
            self._add(ModelThought(text, ProviderState(PROVIDER, without(part, "text", "thought"))))
            return (ThoughtDelta(text),) if text else ()
        self._add(Text(text, self._state(without(part, "text"))))
        return (TextDelta(text),) if text else ()

    def _add(self, part: Text | ModelThought) -> None:
        last = self._parts[-1] if self._parts else None
        if isinstance(part, Text) and isinstance(last, Text) and part.state is None and last.state is None:
            self._parts[-1] = Text(last.text + part.text)
        elif (
            isinstance(part, ModelThought)
            and isinstance(last, ModelThought)
            and not state_for(PROVIDER, part.state)
            and not state_for(PROVIDER, last.state)
        ):
            self._parts[-1] = ModelThought(last.text + part.text, last.state)
        elif part != Text(""):
            self._parts.append(part)

    def _tool_request(self, part: Mapping[str, Any]) -> ToolRequest:
        call = as_object(part["functionCall"])
        identity = self._unused_id(as_text(call.get("id")))
        arguments: object = call.get("args")
        invalid = None
        if arguments is not None and not is_object(arguments):
            invalid = f"the arguments are not a JSON object: {excerpt(str(arguments))}"
        kept = without(part, "functionCall")
        if call_kept := without(call, "name", "args"):
            kept["functionCall"] = call_kept
        state = ProviderState(PROVIDER, kept)
        return ToolRequest(identity, as_text(call.get("name")), as_object(arguments), state, invalid)

    @override
    def answer(self) -> StreamedAnswer:
        finish = Finish.SAFETY if self._blocked else FINISH.get(self._reason, Finish.OTHER)
        if finish is Finish.STOP and any(isinstance(part, ToolRequest) for part in self._parts):
            finish = Finish.TOOL_CALLS
        raw = f"{self._reason}: {excerpt(self._explanation)}" if self._explanation else self._reason
        message = Message("assistant", tuple(self._parts))
        return StreamedAnswer(message, self._read_usage(), finish, raw or None, ended=bool(self._reason))

    def _read_usage(self) -> Usage:
        thoughts = self._count("thoughtsTokenCount")
        return Usage(
            input=self._count("promptTokenCount") + self._count("toolUsePromptTokenCount"),
            output=self._count("candidatesTokenCount") + thoughts,
            cached=self._count("cachedContentTokenCount"),
            thoughts=thoughts,
        )


class _Client(Protocol):
    """The used part of the SDK's client."""

    async def events(self, path: str, body: JsonObject) -> AsyncGenerator[object, None]: ...


_responses: ContextVar["list[httpx2.Response] | None"] = ContextVar("gemini_responses", default=None)
"""List that receives the HTTP response of the request that is being opened."""


class GeminiModel(ProviderModel[_Client]):
    """A Gemini model."""

    tool_names = NameRule("A-Za-z0-9_.-", begins="A-Za-z_")

    def __init__(
        self, name: str, endpoint: ModelEndpoint, environment: Mapping[str, str], options: StreamOptions
    ) -> None:
        super().__init__(name.removeprefix("models/"), endpoint, environment, options)

    @property
    @override
    def capabilities(self) -> Capabilities:
        return self._able(Capabilities(thoughts=thinks(self.name), web_search=self.name.startswith("gemini-")))

    @override
    def _search(self, query: str) -> tuple[JsonObject, SearchReader] | None:
        return gemini_search(query), GeminiSearchReader()

    def _body(self, request: ModelRequest, attachments: Attachments) -> JsonObject:
        return request_body(request, self.name, attachments)

    def _reader(self, request: ModelRequest) -> GeminiReader:
        return GeminiReader(used_ids(request.messages))

    @asynccontextmanager
    async def _open(self, body: JsonObject) -> AsyncGenerator[AsyncIterator[object], None]:
        client = await self._client.get()
        path = self.name if "/" in self.name else f"models/{self.name}"
        responses: list[httpx2.Response] = []
        token = _responses.set(responses)
        try:
            events = await client.events(f"{path}:streamGenerateContent?alt=sse", body)
        finally:
            _responses.reset(token)
        try:
            async with aclosing(events):
                yield events
        finally:
            # The SDK leaves closing to the garbage collector.
            for response in responses:
                await response.aclose()

    def _failure(self, error: Exception) -> HttpFailure | Exception | None:
        import httpx2
        from google.genai.errors import APIError, UnknownApiResponseError

        if isinstance(error, UnknownApiResponseError):
            return HttpFailure(None, text="the received data is not JSON")
        if not isinstance(error, APIError):
            return None
        response = cast("object", getattr(error, "response", None))
        headers = dict(response.headers) if isinstance(response, httpx2.Response) else {}
        return HttpFailure(error.code, error_object(getattr(error, "details", None)), headers, error.message or "")

    def _connect(self) -> _Client:
        from google import genai
        from google.genai.types import HttpOptions

        class RawClient(genai.Client):
            """The SDK's client with a stream of raw chunks, before its types drop unknown fields."""

            async def events(self, path: str, body: JsonObject) -> AsyncGenerator[object, None]:
                chunks = await self._api_client.async_request_streamed("post", path, dict(body), None)
                return _decode(chunks)

        http = self._http_client()
        http.event_hooks = {**http.event_hooks, "response": [_remember, *http.event_hooks["response"]]}
        options = HttpOptions(base_url=self._endpoint.base_url, api_version=API_VERSION, httpx_async_client=http)
        return RawClient(vertexai=False, api_key=self._endpoint.key, http_options=options)


async def _remember(response: "httpx2.Response") -> None:
    responses = _responses.get()
    if responses is not None:
        responses.append(response)


async def _decode(chunks: AsyncIterator[Any]) -> AsyncGenerator[object, None]:
    async for chunk in chunks:
        if chunk.body:
            yield decode_loosely(chunk.body)


MODEL = GeminiModel
