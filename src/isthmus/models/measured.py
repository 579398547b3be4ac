"""A model whose requests are measured, for those who operate the program."""

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING

from typing_extensions import override

from isthmus.models.port.base import (
    Capabilities,
    ChatModel,
    Done,
    Message,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    PreparedModel,
    SearchAnswer,
    SearchingModel,
    StreamItem,
    Text,
    ToolRequest,
    Usage,
)
from isthmus.runtime.telemetry import NO_TELEMETRY, ModelCall, Telemetry

if TYPE_CHECKING:
    from isthmus.encoding.codec import JsonObject


def measured(model: ChatModel, telemetry: Telemetry) -> ChatModel:
    """Return a model whose requests ``telemetry`` takes; the same one if it takes nothing."""
    return model if telemetry is NO_TELEMETRY else MeasuredModel(model, telemetry)


class MeasuredModel(PreparedModel, SearchingModel):
    """A ChatModel that does what ``model`` does, and measures it."""

    def __init__(self, model: ChatModel, telemetry: Telemetry) -> None:
        self._model = model
        self._telemetry = telemetry

    @property
    @override
    def name(self) -> str:
        return self._model.name

    @property
    @override
    def provider(self) -> str:
        return self._model.provider

    @property
    @override
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    @override
    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        call = ModelCall(self.provider, self.name, partial(_messages, request.messages))
        with self._telemetry.measure(call):
            try:
                async with aclosing(self._model.stream(request)) as items:
                    async for item in items:
                        if isinstance(item, Done):
                            _count(call, item.usage)
                            call.finish, call.answer = item.finish.value, partial(_messages, (item.message,))
                        yield item
            except ModelError as error:
                call.failure = error.kind.value
                raise
            except GeneratorExit:
                call.failure = call.failure or ("" if call.finish else "abandoned")
                raise

    @override
    async def search(self, query: str) -> SearchAnswer:
        if not isinstance(self._model, SearchingModel):
            raise ModelError(ModelErrorKind.BAD_REQUEST, f"{self.name} does not search the web")
        call = ModelCall(self.provider, self.name, partial(_messages, (Message("user", (Text(query),)),)))
        with self._telemetry.measure(call):
            try:
                found = await self._model.search(query)
            except ModelError as error:
                call.failure = error.kind.value
                raise
            _count(call, found.usage)
            call.answer = partial(_messages, (Message("assistant", (Text(found.text),)),))
            return found

    @override
    async def prepare(self) -> None:
        if isinstance(self._model, PreparedModel):
            await self._model.prepare()

    @override
    async def aclose(self) -> None:
        await self._model.aclose()


def _count(call: ModelCall, usage: Usage) -> None:
    call.input_tokens, call.output_tokens = usage.input, usage.output
    call.cached_tokens, call.cache_write_tokens, call.cost = usage.cached, usage.cache_write, usage.cost


def _messages(messages: Sequence[Message], characters: int) -> str:
    """Return the last messages as JSON in the form of OpenTelemetry's conventions, with so many characters of text."""
    found: list[JsonObject] = []
    for message in reversed(messages):
        parts: list[JsonObject] = []
        for part in message.parts:
            match part:
                case Text(text):
                    parts.append({"type": "text", "content": text[:characters]})
                    characters -= len(text)
                case ModelThought(text):
                    parts.append({"type": "reasoning", "content": text[:characters]})
                    characters -= len(text)
                case ToolRequest(call_id, name, arguments):
                    characters -= len(json.dumps(arguments))
                    shown: JsonObject = arguments if characters >= 0 else {}
                    parts.append({"type": "tool_call", "id": call_id, "name": name, "arguments": shown})
                case ModelToolResult(call_id, _, content):
                    parts.append({"type": "tool_call_response", "id": call_id, "response": content[:characters]})
                    characters -= len(content)
                case _:
                    pass
            if characters <= 0:
                break
        found.append({"role": message.role, "parts": parts})
        if characters <= 0:
            break
    return json.dumps(found[::-1], ensure_ascii=False)
