"""The context window of models on servers that imitate OpenAI, over a real connection."""

import asyncio
from typing import Any

import pytest

from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.choose import ModelChoice, open_agents_model, open_model
from isthmus.models.port.base import PreparedModel
from support.model_bench import QUESTION
from support.openai_wire import OpenAIWire
from support.scripted_wire import Reply, Say
from support.wire_server import Answer, WireRequest, WireServer

pytestmark = pytest.mark.anyio

SERVERS: list[tuple[str, dict[str, Any], int | None]] = [
    ("vLLM", {"/v1/models": {"data": [{"id": "other"}, {"id": "m", "max_model_len": 32768}]}}, 32768),
    ("OpenRouter", {"/v1/models": {"data": [{"id": "m", "context_length": 262144}]}}, 262144),
    (
        "llama.cpp",
        {
            "/v1/models": {"data": [{"id": "m", "meta": {"n_ctx_train": 131072}}]},
            "/props": {"default_generation_settings": {"n_ctx": 8192}},
        },
        8192,
    ),
    ("Ollama, loaded", {"/api/ps": {"models": [{"name": "m:latest", "context_length": 4096}]}}, 4096),
    (
        "Ollama, to be loaded",
        {"/api/ps": {"models": []}, "/api/show": {"parameters": 'stop "x"\nnum_ctx    16384\n'}},
        16384,
    ),
    ("nothing", {}, None),
    ("no numbers", {"/v1/models": {"data": [{"id": "m", "max_model_len": "many"}]}, "/props": [1]}, None),
    ("not a window", {"/v1/models": {"data": [{"id": "m", "max_model_len": -1}]}, "/api/ps": {"models": 3}}, None),
]


async def window_of(base_url: str) -> int | None:
    model = open_model(ModelChoice("openai", "m", "a test", base_url), {})
    assert isinstance(model, PreparedModel)
    try:
        await model.prepare()
        return model.capabilities.context_window
    finally:
        await model.aclose()


@pytest.mark.parametrize(("name", "answers", "window"), SERVERS)
async def test_the_window_is_what_the_server_says(name: str, answers: dict[str, Any], window: int | None) -> None:
    def respond(request: WireRequest) -> Answer:
        return Answer.json(answers[request.path]) if request.path in answers else Answer.json({}, 404)

    with WireServer(respond) as server:
        assert await window_of(f"{server.base_url}/v1") == window


async def test_only_a_server_that_answers_as_ollama_is_asked_about_a_model_of_ollama() -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"/api/ps": {"models": 3}}, False),
        ({"/api/ps": {"models": []}}, True),
    ]
    for answers, asked in cases:

        def respond(request: WireRequest, answers: dict[str, Any] = answers) -> Answer:
            return Answer.json(answers[request.path]) if request.path in answers else Answer.json({}, 404)

        with WireServer(respond) as server:
            assert await window_of(f"{server.base_url}/v1") is None
            assert ("/api/show" in [request.path for request in server.requests]) is asked


@pytest.mark.parametrize(
    "answer", [Answer(200, {"content-type": "text/html"}, (b"<html>",)), Answer(200, {}, (b"[" * 99_999,))]
)
async def test_a_server_that_answers_nonsense_has_no_known_window(answer: Answer) -> None:
    with WireServer(lambda _: answer) as server:
        assert await window_of(f"{server.base_url}/v1") is None


async def test_a_server_that_is_gone_has_no_known_window() -> None:
    with WireServer(lambda _: Answer()) as server:
        base_url = f"{server.base_url}/v1"
    assert await window_of(base_url) is None


async def test_ollama_is_asked_again_once_the_model_is_loaded() -> None:
    class Ollama(OpenAIWire):
        def answer_other(self, request: WireRequest) -> Answer:
            if request.path == "/api/ps" and self.model_requests:
                return Answer.json({"models": [{"name": "m", "context_length": 8192}]})
            return Answer.json({}, 404)

    with Ollama([Reply.of(Say("ok"))]) as wire:
        model = open_model(ModelChoice("openai", "m", "a test", wire.base_url), {})
        assert isinstance(model, PreparedModel)
        await model.prepare()
        assert model.capabilities.context_window is None
        assert [item async for item in model.stream(QUESTION)]
        assert model.capabilities.context_window == 8192
        await model.aclose()


async def test_turns_beside_each_other_ask_a_silent_server_once_more_together() -> None:
    async def whole(model: PreparedModel) -> None:
        assert [item async for item in model.stream(QUESTION)]

    with OpenAIWire([Reply.of(Say("ok"))] * 24) as wire:
        model = open_model(ModelChoice("openai", "m", "a test", wire.base_url), {})
        assert isinstance(model, PreparedModel)
        await model.prepare()
        for _ in range(3):
            await asyncio.gather(*(whole(model) for _ in range(8)))
        await model.aclose()
    assert [request.path for request in wire.requests].count("/v1/models") == 2


@pytest.mark.parametrize(
    ("provider", "name", "path", "answer"),
    [
        (
            "anthropic",
            "claude-opus-9",
            "/v1/models/claude-opus-9",
            {"id": "claude-opus-9", "max_input_tokens": 2_000_000, "max_tokens": 256_000},
        ),
        (
            "gemini",
            "gemini-9-pro",
            "/v1beta/models/gemini-9-pro",
            {"name": "models/gemini-9-pro", "inputTokenLimit": 2_000_000, "outputTokenLimit": 256_000},
        ),
    ],
)
async def test_a_provider_is_asked_for_what_the_table_does_not_know(
    provider: str, name: str, path: str, answer: dict[str, Any]
) -> None:
    def respond(request: WireRequest) -> Answer:
        return Answer.json(answer) if request.path == path else Answer.json({}, 404)

    with WireServer(respond) as server:
        variable = {"anthropic": "ANTHROPIC", "gemini": "GOOGLE_GEMINI"}[provider]
        environment = {f"{variable}_BASE_URL": server.base_url}
        known, unknown = (2_000_000, 256_000), (None, None)
        for asked, limits, requests in ((name, known, 1), (f"{name}-other", unknown, 2), ("my-own", unknown, 2)):
            model = open_model(ModelChoice(provider, asked, "a test"), environment)
            assert isinstance(model, PreparedModel)
            try:
                await model.prepare()
                assert (model.capabilities.context_window, model.capabilities.output_limit) == limits
            finally:
                await model.aclose()
            assert len(server.requests) == requests


async def test_a_provider_is_not_asked_for_what_the_table_or_the_settings_know() -> None:
    with WireServer(lambda _: Answer.json({}, 404)) as server:
        environment = {"ANTHROPIC_BASE_URL": server.base_url}
        overrides = {"claude-opus-9": ModelOverride(300_000, 8_000)}
        for name, limits in (("claude-sonnet-5-5", (1_000_000, 128_000)), ("claude-opus-9", (300_000, 8_000))):
            model = open_agents_model(ModelChoice("anthropic", name, "a test"), environment, overrides=overrides)
            assert isinstance(model, PreparedModel)
            try:
                await model.prepare()
                assert (model.capabilities.context_window, model.capabilities.output_limit) == limits
            finally:
                await model.aclose()
        assert not server.requests


async def test_settings_count_before_what_a_server_says() -> None:
    with WireServer(lambda _: Answer.json({"data": [{"id": "m", "max_model_len": 32_768}]})) as server:
        choice = ModelChoice("openai", "m", "a test", f"{server.base_url}/v1")
        model = open_agents_model(choice, {}, overrides={"m": ModelOverride(16_000)})
        assert isinstance(model, PreparedModel)
        try:
            await model.prepare()
            assert model.capabilities.context_window == 16_000
        finally:
            await model.aclose()
