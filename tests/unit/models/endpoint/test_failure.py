from typing import Any

import pytest

from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.failure import HttpFailure, error_object, hide_secrets, model_error
from isthmus.models.endpoint.providers import ANTHROPIC, GEMINI, OPENAI, Provider
from isthmus.models.port.base import ModelErrorKind

KIND = ModelErrorKind

# Observed answers of the servers, with texts shortened where they do not matter.
SEEN: list[tuple[str, Provider, int | None, Any, ModelErrorKind]] = [
    (
        "gemini key",
        GEMINI,
        400,
        {"error": {"message": "API key not valid.", "status": "INVALID_ARGUMENT"}},
        KIND.AUTHENTICATION,
    ),
    (
        "gemini key, expired",
        GEMINI,
        400,
        {"error": {"message": "x", "details": [{"reason": "API_KEY_INVALID"}]}},
        KIND.AUTHENTICATION,
    ),
    ("gemini, in a list", GEMINI, 429, [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}], KIND.RATE_LIMIT),
    (
        "anthropic, overloaded",
        ANTHROPIC,
        529,
        {"error": {"type": "overloaded_error", "message": "Overloaded"}},
        KIND.OVERLOADED,
    ),
    ("anthropic, in the stream", ANTHROPIC, 200, {"error": {"type": "overloaded_error"}}, KIND.OVERLOADED),
    ("anthropic, rate in the stream", ANTHROPIC, 200, {"error": {"type": "rate_limit_error"}}, KIND.RATE_LIMIT),
    ("anthropic, request too large", ANTHROPIC, 413, {"error": {"type": "request_too_large"}}, KIND.CONTEXT_TOO_LONG),
    (
        "anthropic, max_tokens",
        ANTHROPIC,
        400,
        {"error": {"message": "input length and `max_tokens` exceed context limit"}},
        KIND.CONTEXT_TOO_LONG,
    ),
    (
        "openai, code",
        OPENAI,
        400,
        {"error": {"message": "x", "code": "context_length_exceeded"}},
        KIND.CONTEXT_TOO_LONG,
    ),
    (
        "llama.cpp",
        OPENAI,
        400,
        {"error": {"code": 400, "message": "x", "type": "exceed_context_size_error"}},
        KIND.CONTEXT_TOO_LONG,
    ),
    (
        "vllm",
        OPENAI,
        400,
        {"object": "error", "message": "This model's maximum context length is 4096 tokens."},
        KIND.CONTEXT_TOO_LONG,
    ),
    (
        "groq, tokens per minute",
        OPENAI,
        413,
        {"error": {"message": "Request too large on tokens per minute", "code": "rate_limit_exceeded"}},
        KIND.RATE_LIMIT,
    ),
    (
        "ollama, model",
        OPENAI,
        404,
        {"error": {"message": 'model "x" not found, try pulling it first'}},
        KIND.UNKNOWN_MODEL,
    ),
    ("ollama, old form", OPENAI, 404, {"error": "model 'x' not found"}, KIND.UNKNOWN_MODEL),
    (
        "openrouter, model",
        OPENAI,
        400,
        {"error": {"message": "x is not a valid model ID", "code": 400}},
        KIND.UNKNOWN_MODEL,
    ),
    ("openrouter, in the stream", OPENAI, None, {"code": 502, "message": "Provider returned error"}, KIND.INTERRUPTED),
    ("openrouter, credit", OPENAI, 402, {"error": {"message": "Insufficient credits", "code": 402}}, KIND.RATE_LIMIT),
    ("wrong path", OPENAI, 404, "404 page not found", KIND.CONFIGURATION),
    ("a redirect", OPENAI, 301, None, KIND.CONFIGURATION),
    ("a proxy", OPENAI, 407, None, KIND.BAD_REQUEST),
    ("nothing at all", OPENAI, 500, None, KIND.OVERLOADED),
]


@pytest.mark.parametrize(
    ("provider", "status", "body", "kind"), [case[1:] for case in SEEN], ids=[case[0] for case in SEEN]
)
def test_each_servers_way_to_fail_is_recognised(
    provider: Provider, status: int | None, body: Any, kind: ModelErrorKind
) -> None:
    failure = HttpFailure(status, error_object(body), text=body if isinstance(body, str) else "")
    error = model_error(failure, ModelEndpoint(provider, provider.base_url, "secret-key"), "some-model", 0)
    assert error.kind is kind
    assert error.status == (status if status != 200 else None)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"code": "insufficient_quota", "message": "You exceeded your current quota, check your billing"}),
        (429, {"message": "quota", "details": [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}]}),
        (402, {"message": "no credit"}),
    ],
)
def test_a_quota_that_is_used_up_is_final(status: int, error: dict[str, Any]) -> None:
    failure = model_error(HttpFailure(status, error), ModelEndpoint(OPENAI, OPENAI.base_url, "k"), "m", 0)
    assert failure.kind is KIND.RATE_LIMIT
    assert failure.final
    assert "used up" in str(failure)


def test_a_text_is_one_printable_line_without_the_key() -> None:
    endpoint = ModelEndpoint(OPENAI, OPENAI.base_url, "secret-key")
    said = "bad\x1b[31m\n\nsecret-key " + "x" * 5000
    text = str(model_error(HttpFailure(400, {"message": said}), endpoint, "m", 0))
    assert "secret-key" not in text
    assert "[key]" in text
    assert text.isprintable()
    assert len(text) < 500


def test_an_imitator_of_openai_is_not_called_openai() -> None:
    endpoint = ModelEndpoint(OPENAI, "http://127.0.0.1:11434/v1", "k", is_named=True)
    text = str(model_error(HttpFailure(500, {"message": "boom"}), endpoint, "m", 0))
    assert "OpenAI" not in text
    assert "model server" in text


def test_a_placeholder_for_a_key_is_not_looked_for_in_texts() -> None:
    endpoint = ModelEndpoint(OPENAI, OPENAI.base_url, "x")
    assert hide_secrets("max tokens exhausted", endpoint) == "max tokens exhausted"
