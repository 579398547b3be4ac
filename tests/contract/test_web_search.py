"""Search of the web by each provider, over its real SDK: the request, and answers as its documents show them."""

import asyncio
import json
from typing import Any

import pytest

from isthmus.agent.calls.web_search import search_web
from isthmus.models.choose import choose, open_model
from isthmus.models.port.base import ChatModel, SearchSource
from isthmus.models.streaming import StreamOptions
from isthmus.parts.model_directory import SharedModel
from isthmus.tools.port.failure import ToolFailure
from support.wire_server import Answer, WireRequest, WireServer

pytestmark = pytest.mark.anyio

GEMINI: list[dict[str, Any]] = [
    {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": "weighing", "thought": True}, {"text": "Größe zählt: Spain won. "}],
                }
            }
        ]
    },
    {
        "candidates": [
            {
                "content": {"role": "model", "parts": [{"text": "It was 2-1."}]},
                "finishReason": "STOP",
                "groundingMetadata": {
                    "webSearchQueries": ["who won"],
                    "searchEntryPoint": {"renderedContent": "<div>"},
                    "groundingChunks": [
                        {"web": {"uri": "https://one.test/a", "title": "one.test"}},
                        {"web": {"uri": "javascript:alert(1)", "title": "bad"}},
                        {"web": {"uri": "https://two.test/b", "title": "two.test"}},
                    ],
                    "groundingSupports": [
                        {"segment": {"endIndex": 25, "text": "Größe zählt: Spain won."}, "groundingChunkIndices": [0]},
                        {"segment": {"startIndex": 27, "endIndex": 38}, "groundingChunkIndices": [0, 1, 2, 9]},
                        {"segment": {"endIndex": 999}, "groundingChunkIndices": [0]},
                    ],
                },
            }
        ],
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 7, "toolUsePromptTokenCount": 100},
    },
]
ANTHROPIC: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-test", "content": [],
            "usage": {"input_tokens": 2679, "output_tokens": 3},
        },
    },
    {
        "type": "content_block_start", "index": 0,
        "content_block": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start", "index": 1,
        "content_block": {
            "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "title": "Not cited", "url": "https://none.test"}],
        },
    },
    {"type": "content_block_stop", "index": 1},
    {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": "Spain won"}},
    {
        "type": "content_block_delta", "index": 2,
        "delta": {
            "type": "citations_delta",
            "citation": {
                "type": "web_search_result_location", "url": "https://one.test/a", "title": "One", "cited_text": "won",
                "encrypted_index": "x",
            },
        },
    },
    {"type": "content_block_stop", "index": 2},
    {"type": "content_block_start", "index": 3, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "."}},
    {"type": "content_block_stop", "index": 3},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]  # fmt: skip
RESPONSES: list[dict[str, Any]] = [
    {"type": "response.created", "response": {"id": "r"}},
    {
        "type": "response.output_item.done", "output_index": 0,
        "item": {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search"}},
    },
    {
        "type": "response.output_item.done", "output_index": 1,
        "item": {
            "id": "m_1", "type": "message", "role": "assistant", "status": "completed",
            "content": [
                {
                    "type": "output_text", "text": "Spain won. It was 2-1.",
                    "annotations": [
                        {
                            "type": "url_citation", "start_index": 0, "end_index": 9, "url": "https://one.test/a",
                            "title": "One",
                        },
                        {"type": "file_citation", "index": 3},
                    ],
                }
            ],
        },
    },
    {
        "type": "response.completed",
        "response": {"id": "r", "status": "completed", "usage": {"input_tokens": 9, "output_tokens": 5}},
    },
]  # fmt: skip
PROVIDERS: list[tuple[str, dict[str, str], list[dict[str, Any]], str, list[SearchSource], tuple[int, int]]] = [
    (
        "gemini:gemini-3.8-flash",
        {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": "{url}"},
        GEMINI,
        "Größe zählt: Spain won[1]. It was 2-1.[1][2]",
        [SearchSource("one.test", "https://one.test/a"), SearchSource("two.test", "https://two.test/b")],
        (111, 7),
    ),
    (
        "anthropic:claude-sonnet-5-5",
        {"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": "{url}"},
        ANTHROPIC,
        "Spain won[1].",
        [SearchSource("One", "https://one.test/a")],
        (2679, 20),
    ),
    (
        "responses:gpt-6",
        {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": "{url}/v1"},
        RESPONSES,
        "Spain won[1]. It was 2-1.",
        [SearchSource("One", "https://one.test/a")],
        (9, 5),
    ),
]


def streamed(events: list[dict[str, Any]]) -> Answer:
    named = [(f"event: {event['type']}\n" if "type" in event else "", json.dumps(event)) for event in events]
    lines = "".join(f"{name}data: {data}\n\n" for name, data in named)
    return Answer(200, {"content-type": "text/event-stream"}, (lines.encode(),))


def opened(spec: str, variables: dict[str, str], url: str) -> ChatModel:
    environment = {name: value.format(url=url) for name, value in variables.items()}
    return open_model(choose(spec, None, environment), environment, StreamOptions(sleep=lambda _: asyncio.sleep(0)))


@pytest.mark.parametrize(("spec", "variables", "events", "text", "sources", "tokens"), PROVIDERS)
async def test_the_provider_searches_and_its_sources_are_numbered(
    spec: str,
    variables: dict[str, str],
    events: list[dict[str, Any]],
    text: str,
    sources: list[SearchSource],
    tokens: tuple[int, int],
) -> None:
    asked: list[WireRequest] = []

    def respond(request: WireRequest) -> Answer:
        asked.append(request)
        return streamed(events)

    with WireServer(respond) as server:
        # As a model that the session has chosen.
        model = SharedModel(opened(spec, variables, server.base_url))

        async def source(_: str | None) -> ChatModel:
            return model

        try:
            answer = await search_web(source, [None], "who won")
        finally:
            await model.aclose()
    assert answer.text == text
    assert list(answer.sources) == [(item.title, item.url) for item in sources]
    assert (answer.tokens.input, answer.tokens.output) == tokens
    body = asked[-1].json
    assert "who won" in json.dumps(body)
    assert body["tools"] in (
        [{"googleSearch": {}}],
        [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
        [{"type": "web_search"}],
    )


@pytest.mark.parametrize(("spec", "variables"), [(item[0], item[1]) for item in PROVIDERS])
@pytest.mark.parametrize(
    "answer",
    [
        Answer.json({"error": {"message": "no search for you", "type": "invalid_request_error"}}, 400),
        Answer(200, {"content-type": "text/event-stream"}, (b"",)),
        Answer(200, {"content-type": "text/event-stream"}, (b"data: {\n\n",)),
    ],
)
async def test_a_search_that_fails_is_a_failed_call_that_says_why(
    spec: str, variables: dict[str, str], answer: Answer
) -> None:
    with WireServer(lambda _: answer) as server:
        model = opened(spec, variables, server.base_url)

        async def source(_: str | None) -> ChatModel:
            return model

        try:
            with pytest.raises(ToolFailure, match="the search failed") as failed:
                await search_web(source, [None], "who won")
        finally:
            await model.aclose()
    assert "test-key" not in str(failed.value)
