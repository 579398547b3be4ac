"""A model of each provider beside the fake server it talks to: the fixture of the ChatModel contract."""

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pytest

from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.endpoint.http import Timeouts
from isthmus.models.endpoint.providers import Provider as ProviderRecord
from isthmus.models.endpoint.providers import provider_with_id
from isthmus.models.port.base import (
    ChatModel,
    Done,
    Message,
    ModelError,
    ModelRequest,
    ModelToolResult,
    StreamItem,
    Text,
    ToolSpec,
)
from isthmus.models.port.message import message_from_json, message_to_json
from isthmus.models.streaming import ProviderModel, StreamOptions, open_provider
from support.anthropic_wire import AnthropicWire
from support.gemini_wire import GeminiWire
from support.openai_wire import OpenAIWire
from support.responses_wire import ResponsesWire
from support.scripted_wire import Script, ScriptedWire
from support.wire_server import WireRequest

KEY = "sk-secret-0123456789"
TOOLS = (
    ToolSpec("glob", "Find files.", {"type": "object", "properties": {"pattern": {"type": "string"}}}),
    ToolSpec("read_file", "Read a file.", {"type": "object", "properties": {"file_path": {"type": "string"}}}),
)
QUESTION = ModelRequest("You are a test.", (Message("user", (Text("What is here?"),)),), TOOLS)


@dataclass(frozen=True)
class Provider:
    """Differences between the providers in a test."""

    name: str
    wire: type[ScriptedWire]
    messages: Callable[[WireRequest], list[Any]]
    """Returns the assistant's messages of a request, as the provider's JSON."""
    unknown: Mapping[str, Any]
    """A part that no client knows."""
    raw_safety: str

    @property
    def record(self) -> ProviderRecord:
        """The record of the provider."""
        found = provider_with_id(self.name)
        assert found is not None
        return found

    @property
    def key(self) -> str:
        """The variable with its key."""
        return self.record.secrets.keys[0]

    @property
    def base_url(self) -> str:
        """The variable with the address of its server."""
        return self.record.base_url_variable

    def open(
        self, model: str, environment: Mapping[str, str], *, options: StreamOptions | None = None
    ) -> ProviderModel[Any]:
        return open_provider(self.record, model, environment, options=options)


def gemini_messages(request: WireRequest) -> list[Any]:
    return [content["parts"] for content in request.json["contents"] if content["role"] == "model"]


def anthropic_messages(request: WireRequest) -> list[Any]:
    return [message["content"] for message in request.json["messages"] if message["role"] == "assistant"]


def openai_messages(request: WireRequest) -> list[Any]:
    return [message for message in request.json["messages"] if message["role"] == "assistant"]


def responses_messages(request: WireRequest) -> list[Any]:
    kinds = ("function_call_output",)
    items = [item for item in request.json["input"] if item["type"] not in kinds and item.get("role") != "user"]
    return [items] if items else []


GEMINI = Provider(
    "gemini",
    GeminiWire,
    gemini_messages,
    {"hologram": {"voxels": [1, 2]}, "thoughtSignature": "h=="},
    "SAFETY",
)
ANTHROPIC = Provider(
    "anthropic",
    AnthropicWire,
    anthropic_messages,
    {"type": "hologram", "voxels": [1, 2]},
    "refusal",
)
OPENAI = Provider(
    "openai",
    OpenAIWire,
    openai_messages,
    {"hologram": {"voxels": [1, 2]}},
    "content_filter",
)
RESPONSES = Provider(
    "responses",
    ResponsesWire,
    responses_messages,
    {"type": "hologram", "voxels": [1, 2]},
    "content_filter",
)
ALL = [GEMINI, ANTHROPIC, OPENAI, RESPONSES]
each_provider = pytest.mark.parametrize("provider", [pytest.param(provider, id=provider.name) for provider in ALL])


@dataclass
class Bench:
    """A model, the server it talks to, and the pauses between retries that it asked for."""

    model: ChatModel
    wire: ScriptedWire
    waits: list[float] = field(default_factory=list[float])

    async def ask(self, request: ModelRequest = QUESTION) -> list[StreamItem]:
        return [item async for item in self.model.stream(request)]

    async def answer(self, request: ModelRequest = QUESTION) -> Done:
        last = (await self.ask(request))[-1]
        assert isinstance(last, Done)
        return last

    async def error(self, request: ModelRequest = QUESTION) -> ModelError:
        with pytest.raises(ModelError) as caught:
            await self.ask(request)
        assert_no_key(caught.value)
        return caught.value


def assert_no_key(error: BaseException | None) -> None:
    while error is not None:
        assert KEY not in str(error)
        error = error.__cause__ or error.__context__


@asynccontextmanager
async def bench(
    provider: Provider,
    *replies: Script,
    model: str = "test-model",
    timeouts: Timeouts | None = None,
    overrides: Mapping[str, ModelOverride] = MappingProxyType({}),
) -> AsyncGenerator[Bench, None]:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    options = StreamOptions(
        sleep=sleep, random=lambda: 0.5, timeouts=timeouts or Timeouts(connect=5, idle=10), overrides=overrides
    )
    with provider.wire(replies) as wire:
        environment = {provider.base_url: wire.base_url, provider.key: KEY}
        opened = provider.open(model, environment, options=options)
        try:
            yield Bench(opened, wire, waits)
        finally:
            await opened.aclose()


def continued(done: Done, *results: ModelToolResult, text: str = "") -> ModelRequest:
    """Return the request after an answer, which was stored in the journal in between."""
    kept = message_from_json(json.loads(json.dumps(message_to_json(done.message))))
    parts = (*results, Text(text)) if text else results
    return replace(QUESTION, messages=(*QUESTION.messages, kept, Message("user", parts)))
