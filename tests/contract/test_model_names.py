"""The models that the providers' servers list, over a real connection."""

from typing import Any

import pytest

from isthmus.models.endpoint.model_names import list_model_names
from support.wire_server import Answer, WireRequest, WireServer

pytestmark = pytest.mark.anyio

GEMINI = {
    "models": [
        {"name": "models/gemini-3.8-flash", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"]},
        {"name": "models/learnlm-2", "supportedGenerationMethods": ["generateContent"]},
    ]
}
LISTS: list[tuple[dict[str, str], str, dict[str, Any], tuple[str, str], list[str]]] = [
    (
        {"GEMINI_API_KEY": "key-of-gemini", "GOOGLE_GEMINI_BASE_URL": "{url}"},
        "/v1beta/models",
        GEMINI,
        ("x-goog-api-key", "key-of-gemini"),
        ["gemini-3.8-flash", "gemini:learnlm-2"],
    ),
    (
        {"ANTHROPIC_API_KEY": "key-of-anthropic", "ANTHROPIC_BASE_URL": "{url}"},
        "/v1/models",
        {"data": [{"id": "claude-sonnet-5-5", "type": "model"}], "has_more": False},
        ("x-api-key", "key-of-anthropic"),
        ["claude-sonnet-5-5"],
    ),
    (
        {"ANTHROPIC_AUTH_TOKEN": "token-of-anthropic", "ANTHROPIC_BASE_URL": "{url}"},
        "/v1/models",
        {"data": [{"id": "claude-sonnet-5-5"}]},
        ("authorization", "Bearer token-of-anthropic"),
        ["claude-sonnet-5-5"],
    ),
    (
        {"OPENAI_API_KEY": "key-of-openai", "OPENAI_BASE_URL": "{url}/v1"},
        "/v1/models",
        {"object": "list", "data": [{"id": "qwen3-coder"}, {"id": "gpt-6.2-sol"}, {"id": "bad name"}, {"id": 3}, 4]},
        ("authorization", "Bearer key-of-openai"),
        ["gpt-6.2-sol", "openai:qwen3-coder"],
    ),
]


@pytest.mark.parametrize(("variables", "path", "answer", "header", "names"), LISTS)
async def test_a_provider_lists_its_models(
    variables: dict[str, str], path: str, answer: dict[str, Any], header: tuple[str, str], names: list[str]
) -> None:
    asked: list[WireRequest] = []

    def respond(request: WireRequest) -> Answer:
        asked.append(request)
        return Answer.json(answer) if request.path == path else Answer.json({}, 404)

    with WireServer(respond) as server:
        environment = {name: value.format(url=server.base_url) for name, value in variables.items()}
        assert list(await list_model_names(environment)) == names
    assert asked[0].headers[header[0]] == header[1]


@pytest.mark.parametrize(
    "answer",
    [
        Answer.json({"error": "no"}, 401),
        Answer(200, {}, (b"[" * 99_999,)),
        Answer(200, {}, (b"x" * 3_000_000,)),
        Answer.json({"data": {"id": "x"}}),
        Answer(200, {"content-type": "text/html"}, (b"<html>",)),
    ],
)
async def test_a_server_that_answers_otherwise_lists_none(answer: Answer) -> None:
    with WireServer(lambda _: answer) as server:
        assert not await list_model_names({"OPENAI_BASE_URL": f"{server.base_url}/v1", "OPENAI_API_KEY": "k" * 20})


async def test_without_a_key_nobody_is_asked() -> None:
    assert not await list_model_names({})
