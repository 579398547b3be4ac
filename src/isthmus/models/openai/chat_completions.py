"""OpenAI's Chat Completions over its SDK, and the many servers that imitate it (Ollama, llama.cpp, vLLM, OpenRouter).

The chunks are read as raw JSON, because the imitators differ: tool calls that all have index 0 or no id, thoughts under
`reasoning`, `reasoning_content` or `reasoning_details`, no usage, no finish reason. An answer ends with a finish reason
or with `[DONE]`; without both it was cut. Other data than text and calls is returned to the same server under the same
name, and only to it. OpenAI's own server is asked by its Responses API (:mod:`isthmus.models.openai.responses`).
https://platform.openai.com/docs/api-reference/chat-streaming, https://openrouter.ai/docs/use-cases/reasoning-tokens
"""

import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text, is_object
from isthmus.models.answer_reader import AnswerReader, StreamedAnswer
from isthmus.models.attachments import Attachments
from isthmus.models.catalogue.facts import Thinking
from isthmus.models.catalogue.table import owner_at
from isthmus.models.conversation import used_ids
from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.failure import HttpFailure, error_object
from isthmus.models.openai.chat_body import encoded_body, origin_of, request_body
from isthmus.models.openai.event_reader import END_MARK, read_events
from isthmus.models.port.base import (
    Capabilities,
    Done,
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    Opaque,
    Part,
    ProviderState,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    Usage,
)
from isthmus.models.port.received import as_count, tool_arguments, without
from isthmus.models.streaming import ProviderModel, StreamOptions

if TYPE_CHECKING:
    from isthmus.models.openai.client import RepeatingClient

FINISH: Mapping[str, Finish] = {
    "stop": Finish.STOP,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
    "length": Finish.LENGTH,
    "content_filter": Finish.SAFETY,
}
THOUGHT_FIELDS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"


@dataclass(slots=True)
class _Call:
    """A tool call that is being received."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list[str])
    whole: JsonObject | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def is_complete(self) -> bool:
        if self.whole is not None:
            return True
        try:
            return is_object(json.loads("".join(self.arguments)))
        except (json.JSONDecodeError, RecursionError):
            return False


class OpenAIReader(AnswerReader):
    """Reader that folds the chunks of one answer."""

    def __init__(self, origin: str, used_ids: Collection[str] = ()) -> None:
        super().__init__(origin, used_ids)
        self._text: list[str] = []
        self._thought: list[str] = []
        self._thought_field = ""
        self._refused = False
        self._has_end_mark = False
        self._calls: list[_Call] = []
        self._unknown: dict[str, Any] = {}

    @override
    def feed(self, event: object) -> Sequence[StreamItem] | HttpFailure:
        if event is END_MARK:
            self._has_end_mark = True
            return ()
        chunk = as_object(event)
        if chunk.get("error"):
            return HttpFailure(None, error_object(chunk))
        if usage := as_object(chunk.get("usage")):
            self._usage = usage
        choice = as_object(next(iter(as_list(chunk.get("choices"))), None))
        self._reason = as_text(choice.get("finish_reason")) or self._reason
        return self._take(as_object(choice.get("delta")) or as_object(choice.get("message")))

    def _take(self, delta: Mapping[str, Any]) -> Sequence[StreamItem]:
        shown: list[StreamItem] = []
        for name, value in delta.items():
            if value in (None, "", [], {}):
                continue
            match name:
                case "role" | "function_call":
                    pass
                case "content":
                    shown += self._content(value)
                case "refusal":
                    self._refused = True
                    shown += self._content(value)
                case "reasoning_content" | "reasoning":
                    shown += self._think(name, as_text(value))
                case "tool_calls":
                    for item in as_list(value):
                        shown += self._call(as_object(item))
                case _:
                    shown += self._keep(name, value, delta)
        return shown

    def _content(self, value: object) -> Sequence[StreamItem]:
        if isinstance(value, str):
            self._text.append(value)
            return (TextDelta(value),)
        # Some servers send a list of typed parts (Mistral).
        shown: list[StreamItem] = []
        for item in map(as_object, as_list(value)):
            if text := as_text(item.get("text")):
                shown += self._content(text)
            for thought in as_list(item.get("thinking")):
                shown += self._think("", as_text(as_object(thought).get("text")))
        return shown

    def _think(self, name: str, text: str) -> Sequence[StreamItem]:
        # A server that sends both fields sends the same thought twice.
        if not text or (self._thought_field and name and name != self._thought_field):
            return ()
        self._thought_field = self._thought_field or name
        self._thought.append(text)
        return (ThoughtDelta(text),)

    def _keep(self, name: str, value: object, delta: Mapping[str, Any]) -> Sequence[StreamItem]:
        before = self._unknown.get(name)
        if name == DETAILS:
            self._unknown[name] = _join_details(as_list(before), as_list(value))
            if any(delta.get(thought) for thought in THOUGHT_FIELDS):
                return ()
            texts = [as_text(as_object(item).get("text") or as_object(item).get("summary")) for item in as_list(value)]
            return [item for text in texts for item in self._think("", text)]
        if isinstance(before, str) and isinstance(value, str):
            self._unknown[name] = before + value
        elif as_list(before) and as_list(value):
            self._unknown[name] = [*as_list(before), *as_list(value)]
        else:
            self._unknown[name] = value
        return ()

    def _call(self, item: Mapping[str, Any]) -> Sequence[StreamItem]:
        function = as_object(item.get("function"))
        identity, name = as_text(item.get("id")), as_text(function.get("name"))
        index = item.get("index")
        call = self._open_call(index if isinstance(index, int) else None, identity, name)
        shown: Sequence[StreamItem] = ()
        if name and not call.name:
            call.name = name
            shown = (ToolRequestStarted(name),)
        call.id = call.id or identity
        call.extra |= without(item, "index", "id", "type", "function")
        arguments: object = function.get("arguments")
        if is_object(arguments):
            call.whole = arguments
        else:
            call.arguments.append(as_text(arguments))
        return shown

    def _open_call(self, index: int | None, identity: str, name: str) -> _Call:
        """Return the call of a piece: a new one if the piece begins it."""
        same = [call for call in self._calls if call.index == index] if index is not None else self._calls
        last = same[-1] if same else None
        begins = last is None
        if last is not None and name:
            # If every call has index 0, another id or a name after a complete call begins the next one.
            differs = bool(identity and last.id and identity != last.id)
            begins = differs or (not identity and bool(last.name) and last.is_complete)
        if last is None or begins:
            last = _Call(index)
            self._calls.append(last)
        return last

    @override
    def answer(self) -> StreamedAnswer:
        parts: list[Part] = []
        if self._thought:
            parts.append(
                ModelThought("".join(self._thought), ProviderState(self._origin, {"field": self._thought_field}))
            )
        if self._unknown:
            parts.append(Opaque(self._origin, dict(self._unknown)))
        if text := "".join(self._text):
            parts.append(Text(text))
        calls = [self._tool_request(call) for call in self._calls]
        parts += calls
        finish = FINISH.get(self._reason, Finish.OTHER)
        if self._refused:
            finish = Finish.SAFETY
        elif calls and finish in (Finish.STOP, Finish.OTHER):
            finish = Finish.TOOL_CALLS
        # The end of the connection says nothing: without chunks it looks the same after a cut.
        is_whole = self._has_end_mark and all(call.is_complete for call in self._calls)
        ended = bool(self._reason) or is_whole
        return StreamedAnswer(
            Message("assistant", tuple(parts)), self._read_usage(), finish, self._reason or None, ended=ended
        )

    def _tool_request(self, call: _Call) -> ToolRequest:
        arguments, invalid = (call.whole, None) if call.whole is not None else tool_arguments("".join(call.arguments))
        return self._request(call.id, call.name, arguments, call.extra, invalid)

    def _read_usage(self) -> Usage:
        prompt = as_object(self._usage.get("prompt_tokens_details"))
        completion = as_object(self._usage.get("completion_tokens_details"))
        cached = as_count(prompt.get("cached_tokens")) or self._count("prompt_cache_hit_tokens")
        return Usage(
            input=self._count("prompt_tokens"),
            output=self._count("completion_tokens"),
            cached=cached,
            cache_write=as_count(prompt.get("cache_write_tokens")),
            thoughts=as_count(completion.get("reasoning_tokens")),
        )


def _join_details(before: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Join the pieces of each reasoning item (same type and index): texts are appended, other fields replaced."""
    joined = list(before)
    for piece in map(as_object, more):
        last = as_object(joined[-1] if joined else None)
        same = all(last.get(name) == piece.get(name) for name in ("type", "index"))
        if not last or not same or not re.fullmatch(r"reasoning\.(text|summary)", as_text(piece.get("type"))):
            joined.append(piece)
            continue
        merged = {**last, **{name: value for name, value in piece.items() if value is not None}}
        for name in ("text", "summary"):
            if name in last or name in piece:
                merged[name] = as_text(last.get(name)) + as_text(piece.get(name))
        joined[-1] = merged
    return joined


class OpenAIModel(ProviderModel["RepeatingClient"]):
    """A model on a server with the Chat Completions API."""

    path = "/chat/completions"
    """Path of the API below the base URL."""

    def __init__(
        self, name: str, endpoint: ModelEndpoint, environment: Mapping[str, str], options: StreamOptions
    ) -> None:
        super().__init__(name, endpoint, environment, options)
        self._looks_up = False

    @property
    @override
    def capabilities(self) -> Capabilities:
        facts = self.facts
        is_own = owner_at(self._endpoint.base_url) == "openai"  # what imitators cache is not known
        thoughts = facts is None or facts.thinking is not Thinking.NONE
        return self._able(Capabilities(thoughts=thoughts, effort_empties_cache=is_own))

    @override
    async def prepare(self) -> None:
        """Ask a server other than OpenAI's own for the context window of the model; takes at most two seconds."""
        self._looks_up = self._endpoint.base_url != self._endpoint.provider.base_url
        if self._looks_up:
            await self._ask_limits()

    @override
    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        return self._stream_and_look(request) if self._looks_up else super().stream(request)

    async def _stream_and_look(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        async with aclosing(super().stream(request)) as items:
            async for item in items:
                if isinstance(item, Done) and self._looks_up and self._said is None:
                    # Ollama tells the window only once the model is loaded. Turns beside this one do not ask too.
                    self._looks_up = False
                    await self._ask_limits()
                yield item

    def _body(self, request: ModelRequest, attachments: Attachments) -> JsonObject:
        return request_body(request, self.name, origin_of(self._endpoint), attachments)

    def _reader(self, request: ModelRequest) -> AnswerReader:
        return OpenAIReader(origin_of(self._endpoint), used_ids(request.messages))

    @asynccontextmanager
    async def _open(self, body: JsonObject) -> AsyncGenerator[AsyncIterator[object], None]:
        client = await self._client.get()
        async with client.streamed(self.path, encoded_body(body)) as response:
            yield read_events(response)

    def _failure(self, error: Exception) -> HttpFailure | Exception | None:
        from openai import APIConnectionError, APIError, APIStatusError

        if isinstance(error, APIStatusError):
            return HttpFailure(error.status_code, error_object(error.body), dict(error.response.headers), error.message)
        if isinstance(error, APIConnectionError):
            return error.__cause__ if isinstance(error.__cause__, Exception) else None
        # An error inside the stream.
        return HttpFailure(None, error_object(error.body), text=error.message) if isinstance(error, APIError) else None

    def _connect(self) -> "RepeatingClient":
        from isthmus.models.openai.client import RepeatingClient

        where = self._endpoint
        return RepeatingClient(
            api_key=where.key, base_url=where.base_url, max_retries=0, http_client=self._http_client()
        )


MODEL = OpenAIModel
