"""Anthropic over its SDK: the body of a request, the meaning of the streamed events, and the connection.

The events are read as raw JSON. Thinking is returned with its signature; redacted thinking and unknown blocks are
returned whole, since Anthropic refuses changed ones. For prompt caching, the tools, the system prompt and the last two
user messages are marked (the maximum is four marks): one of the two was the last mark of the request before. They are
kept for an hour where a user reads the answers, since one pause of more than five minutes pays for that.
https://platform.claude.com/docs/en/build-with-claude/streaming, .../extended-thinking, .../prompt-caching
"""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.media import Media
from isthmus.models.answer_reader import AnswerReader, StreamedAnswer
from isthmus.models.attachments import NO_ATTACHMENTS, Attachment, Attachments
from isthmus.models.catalogue.facts import ModelFacts, Thinking
from isthmus.models.catalogue.table import facts_of
from isthmus.models.conversation import in_order, sampling_fields, state_for, used_ids
from isthmus.models.endpoint.failure import HttpFailure, error_object
from isthmus.models.endpoint.providers import ANTHROPIC
from isthmus.models.fitting import BUDGETS, effort_for, thinking_form
from isthmus.models.port.base import (
    Capabilities,
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    Sampling,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolChoice,
    ToolRequest,
    ToolRequestStarted,
    Usage,
)
from isthmus.models.port.received import as_count, tool_arguments, without
from isthmus.models.streaming import ProviderModel
from isthmus.models.web_search import AnthropicSearchReader, SearchReader, anthropic_search

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

PROVIDER = ANTHROPIC.id
FINISH: Mapping[str, Finish] = {
    "end_turn": Finish.STOP,
    "stop_sequence": Finish.STOP,
    "tool_use": Finish.TOOL_CALLS,
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.SAFETY,
}
CACHED: JsonObject = {"cache_control": {"type": "ephemeral"}}
CACHED_FOR_AN_HOUR: JsonObject = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
"""Marks for the cache: for five minutes after the last use, and for an hour, which costs 2 instead of 1.25 to write."""
CACHED_TURNS = 2
UNKNOWN_OUTPUT = 32_000
"""Output limit in tokens of a model without a row in the table."""
SMALLEST_BUDGET = 1_024
"""Minimum number of tokens for thoughts, if a number is sent."""


def version_of(name: str) -> tuple[int, int] | None:
    """Return the version in a model's name: `claude-opus-4-6` -> (4, 6), `claude-3-7-sonnet-20250219` -> (3, 7)."""
    match = re.search(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)", name)
    return None if match is None else (int(match[1]), int(match[2] or 0))


def facts_of_claude(name: str) -> ModelFacts | None:
    """Return the row of a model in the table; None if it has none."""
    return facts_of(PROVIDER, name)


def thinks(name: str) -> bool:
    """Return whether a model can be asked for its thoughts."""
    return _thinking(name) is not Thinking.NONE


def _thinking(name: str) -> Thinking:
    version = version_of(name)
    is_new = version is not None and version >= (4, 6)
    return thinking_form(facts_of_claude(name), Thinking.ADAPTIVE if is_new else Thinking.NONE)


def output_limit(name: str, facts: ModelFacts | None) -> int:
    """Return the maximum number of output tokens to ask for; the API requires one."""
    if facts is None or facts.output_limit is None:
        return UNKNOWN_OUTPUT
    version = version_of(name)
    # Models before 4.5 refuse a request that together with such an answer would exceed the window.
    is_strict = version is not None and version < (4, 5)
    return min(facts.output_limit, facts.window // 4) if is_strict else facts.output_limit


def request_body(request: ModelRequest, name: str, attachments: Attachments = NO_ATTACHMENTS) -> dict[str, Any]:
    """Return the body of `POST /v1/messages`."""
    # Servers that imitate the API may not know the mark for an hour.
    is_long = request.is_interactive and version_of(name) is not None
    mark = CACHED_FOR_AN_HOUR if is_long else CACHED
    body: dict[str, Any] = {
        "model": name,
        "max_tokens": request.max_output_tokens or output_limit(name, facts_of_claude(name)),
        "messages": _messages(request.messages, attachments, mark),
        "stream": True,
    }
    if request.system:
        body["system"] = [{"type": "text", "text": request.system, **mark}]
    if request.tools:
        tools = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.json_schema}
            for tool in request.tools
        ]
        body["tools"] = [*tools[:-1], {**tools[-1], **mark}]
        if request.choice is not ToolChoice.AUTO:
            body["tool_choice"] = {"type": request.choice.value}
    body |= sampling_fields(request.sampling)
    # With thoughts the API refuses a forced call, and parameters of sampling.
    if request.choice is not ToolChoice.ANY and request.sampling == Sampling():
        body |= _thinking_fields(request, name, body["max_tokens"])
    return body


def _thinking_fields(request: ModelRequest, name: str, maximum: int) -> JsonObject:
    """Return the fields that say how much to think in an answer of at most ``maximum`` tokens."""
    effort = effort_for(request.effort, facts_of_claude(name))
    match _thinking(name):
        case Thinking.ADAPTIVE:
            fields: JsonObject = {"thinking": {"type": "adaptive", "display": "summarized"}}
            return fields if effort is None else {**fields, "output_config": {"effort": effort.value}}
        case Thinking.BUDGET:
            budget = min(BUDGETS.get(effort, 0) if effort is not None else 0, maximum // 2)
            if budget < SMALLEST_BUDGET or not _may_begin_thinking(request.messages):
                return {}
            return {"thinking": {"type": "enabled", "budget_tokens": budget}}
        case _:
            return {}


def _may_begin_thinking(messages: Sequence[Message]) -> bool:
    """Return whether a turn may have thoughts: within calls, only if the message with them begins with a thought."""
    last = next((message for message in reversed(messages) if message.role == "assistant"), None)
    is_within = bool(messages) and any(isinstance(part, ModelToolResult) for part in messages[-1].parts)
    if last is None or not is_within:
        return True
    first = next(iter(last.parts), None)
    state = first.state if isinstance(first, ModelThought) else None
    return bool(state_for(PROVIDER, state).get("signature")) or isinstance(first, Opaque)


def _messages(messages: Sequence[Message], attachments: Attachments, mark: JsonObject) -> list[dict[str, Any]]:
    wire_ids: dict[str, str] = {}
    encoded: list[dict[str, Any]] = []
    for message in in_order(messages):
        blocks = [block for part in message.parts for block in _blocks(part, wire_ids, attachments)]
        # Media of failed calls follow all results, which must come first.
        results = [part for part in message.parts if isinstance(part, ModelToolResult)]
        beside = [_inline(item) for part in results if part.is_error for item in attachments.of(part.media)]
        blocks[len(results) : len(results)] = beside
        if blocks:
            encoded.append({"role": message.role, "content": blocks})
    cached = [message for message in encoded if message["role"] == "user"][-CACHED_TURNS:]
    for message in cached:
        message["content"][-1] = {**message["content"][-1], **mark}
    return encoded


def _blocks(part: Part, wire_ids: dict[str, str], attachments: Attachments) -> Sequence[JsonObject]:
    match part:
        case Text(text, state):
            # Blocks without a visible character are refused.
            return [{"type": "text", "text": text, **state_for(PROVIDER, state)}] if text.strip() else ()
        case ModelThought(text, state):
            kept = state_for(PROVIDER, state)
            return [{"type": "thinking", "thinking": text, **kept}] if kept.get("signature") else ()
        case ToolRequest(identity, name, arguments, state):
            kept = state_for(PROVIDER, state)
            wire_ids[identity] = as_text(kept.get("id")) or _as_id(identity)
            return [{"type": "tool_use", **kept, "id": wire_ids[identity], "name": name, "input": arguments}]
        case ModelToolResult():
            return [_result(part, wire_ids, attachments)]
        case Media():
            return [_inline(item) for item in attachments.of((part,))] or [
                {"type": "text", "text": attachments.note(part)}
            ]
        case Opaque(provider, raw):
            return [raw] if provider == PROVIDER else ()
        case _:
            assert_never(part)


def _result(result: ModelToolResult, wire_ids: Mapping[str, str], attachments: Attachments) -> JsonObject:
    text = attachments.with_notes(result.content, result.media)
    block = {"type": "tool_result", "tool_use_id": wire_ids.get(result.id, _as_id(result.id)), "content": text}
    if result.is_error:
        return {**block, "is_error": True}  # A failed result is refused if it contains anything but text.
    if inline := [_inline(item) for item in attachments.of(result.media)]:
        return {**block, "content": [*([{"type": "text", "text": text}] if text.strip() else ()), *inline]}
    return block


def _inline(attachment: Attachment) -> JsonObject:
    source = {"type": "base64", "media_type": attachment.media_type, "data": attachment.data}
    return {"type": "image" if attachment.is_image else "document", "source": source}


def _as_id(identity: str) -> str:
    # Ids of other providers may contain characters that Anthropic refuses.
    return re.sub(r"[^a-zA-Z0-9_-]", "_", identity)


@dataclass(slots=True)
class _Block:
    """A content block that is being received."""

    start: JsonObject
    text: list[str] = field(default_factory=list[str])
    signature: str = ""
    extra: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def kind(self) -> str:
        return as_text(self.start.get("type"))

    def add(self, text: str) -> Sequence[StreamItem]:
        """Add a piece of a text or a thought, and return its visible item."""
        self.text.append(text)
        if not text:
            return ()
        return (TextDelta(text),) if self.kind == "text" else (ThoughtDelta(text),)


class AnthropicReader(AnswerReader):
    """Reader that folds the events of one answer."""

    def __init__(self, used_ids: Collection[str] = ()) -> None:
        super().__init__(PROVIDER, used_ids)
        self._blocks: dict[int, _Block] = {}
        self._ended = False

    @override
    def feed(self, event: object) -> Sequence[StreamItem] | HttpFailure:
        whole = as_object(event)
        match whole.get("type"):
            case "message_start":
                self._take_usage(as_object(whole.get("message")).get("usage"))
            case "content_block_start":
                return self._start(as_count(whole.get("index")), as_object(whole.get("content_block")))
            case "content_block_delta":
                return self._delta(as_count(whole.get("index")), as_object(whole.get("delta")))
            case "message_delta":
                self._take_usage(whole.get("usage"))
                self._reason = as_text(as_object(whole.get("delta")).get("stop_reason")) or self._reason
            case "message_stop":
                self._ended = True
            case "error":
                return HttpFailure(None, error_object(whole))
            case _:
                pass
        return ()

    def _take_usage(self, usage: object) -> None:
        # Later counts replace earlier ones, since they are totals.
        self._usage = {**self._usage, **{name: item for name, item in as_object(usage).items() if item is not None}}

    def _start(self, index: int, start: Mapping[str, Any]) -> Sequence[StreamItem]:
        block = self._blocks[index] = _Block(start)
        match block.kind:
            case "tool_use":
                return (ToolRequestStarted(as_text(start.get("name"))),)
            case "text" | "thinking":
                return block.add(as_text(start.get(block.kind)))
            case _:
                return ()

    def _delta(self, index: int, delta: Mapping[str, Any]) -> Sequence[StreamItem]:
        block = self._blocks.setdefault(index, _Block({"type": "text"}))
        match block.kind, delta.get("type"):
            case ("text", "text_delta") | ("thinking", "thinking_delta"):
                return block.add(as_text(delta.get(block.kind)))
            case "thinking", "signature_delta":
                block.signature += as_text(delta.get("signature"))
            case _, "input_json_delta":
                block.text.append(as_text(delta.get("partial_json")))
            case "text", "citations_delta":
                block.extra["citations"] = [*as_list(block.extra.get("citations")), delta.get("citation")]
            case (("text" | "thinking" | "tool_use"), _):
                pass
            case _:
                _merge(block, delta)
        return ()

    @override
    def answer(self) -> StreamedAnswer:
        parts = tuple(self._part(self._blocks[index]) for index in sorted(self._blocks))
        parts = tuple(part for part in parts if part != Text(""))
        finish = FINISH.get(self._reason, Finish.OTHER)
        ended = self._ended or bool(self._reason)
        return StreamedAnswer(Message("assistant", parts), self._read_usage(), finish, self._reason or None, ended)

    def _part(self, block: _Block) -> Part:
        text = "".join(block.text)
        match block.kind:
            case "text":
                return Text(text, self._state({**without(block.start, "type", "text", "citations"), **block.extra}))
            case "thinking":
                signature = as_text(block.start.get("signature")) + block.signature
                kept = without(block.start, "type", "thinking", "signature")
                return ModelThought(text, self._state({**kept, "signature": signature} if signature else kept))
            case "tool_use":
                arguments, invalid = tool_arguments(text) if text else (as_object(block.start.get("input")), None)
                given, name = as_text(block.start.get("id")), as_text(block.start.get("name"))
                kept = without(block.start, "type", "id", "name", "input")
                return self._request(given, name, arguments, kept, invalid)
            case _:
                # A block of a tool on the server may stream its input, as our tools do.
                streamed = {"input": tool_arguments(text)[0]} if text else {}
                return Opaque(PROVIDER, {**block.start, **block.extra, **streamed})

    def _read_usage(self) -> Usage:
        cached, cache_write = self._count("cache_read_input_tokens"), self._count("cache_creation_input_tokens")
        details = as_object(self._usage.get("output_tokens_details"))
        lifetimes = as_object(self._usage.get("cache_creation"))
        return Usage(
            input=self._count("input_tokens") + cached + cache_write,
            output=self._count("output_tokens"),
            cached=cached,
            cache_write=cache_write,
            thoughts=as_count(details.get("thinking_tokens")),
            cache_write_1h=min(cache_write, as_count(lifetimes.get("ephemeral_1h_input_tokens"))),
        )


def _merge(block: _Block, delta: Mapping[str, Any]) -> None:
    """Add a delta to an unknown block: strings are appended, other values replaced."""
    for name, value in without(delta, "type").items():
        before = block.extra.get(name, block.start.get(name))
        block.extra[name] = before + value if isinstance(before, str) and isinstance(value, str) else value


class AnthropicModel(ProviderModel["AsyncAnthropic"]):
    """A model by Anthropic."""

    @property
    @override
    def capabilities(self) -> Capabilities:
        is_own = version_of(self.name) is not None
        return self._able(Capabilities(thoughts=thinks(self.name), web_search=is_own, effort_empties_cache=is_own))

    @override
    def _search(self, query: str) -> tuple[JsonObject, SearchReader] | None:
        return anthropic_search(query, self.name), AnthropicSearchReader()

    @override
    def _fitted(self, request: ModelRequest) -> ModelRequest:
        longest = request.max_output_tokens or output_limit(self.name, self.facts)
        return super()._fitted(replace(request, max_output_tokens=longest))

    def _body(self, request: ModelRequest, attachments: Attachments) -> JsonObject:
        return request_body(request, self.name, attachments)

    def _reader(self, request: ModelRequest) -> AnthropicReader:
        return AnthropicReader(used_ids(request.messages))

    @asynccontextmanager
    async def _open(self, body: JsonObject) -> AsyncGenerator[AsyncIterator[object], None]:
        client = await self._client.get()
        from anthropic import AsyncStream

        # Cast to object, to receive the events as raw JSON.
        async with await client.post(
            "/v1/messages", body=body, cast_to=object, stream=True, stream_cls=AsyncStream[object]
        ) as events:
            yield events

    def _failure(self, error: Exception) -> HttpFailure | Exception | None:
        from anthropic import APIConnectionError, APIStatusError

        if isinstance(error, APIStatusError):
            # A status below 300 means an error event inside the stream.
            return HttpFailure(error.status_code, error_object(error.body), dict(error.response.headers))
        cause = error.__cause__
        return cause if isinstance(error, APIConnectionError) and isinstance(cause, Exception) else None

    def _connect(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic

        where = self._endpoint
        return AsyncAnthropic(
            api_key=where.key or None,
            auth_token=where.token,
            base_url=where.base_url,
            max_retries=0,
            http_client=self._http_client(),
        )


MODEL = AnthropicModel
