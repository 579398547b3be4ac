"""The numbers in refusals of requests that are too long, in the words of each provider and server."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.failure import HttpFailure, error_object, model_error
from isthmus.models.endpoint.providers import OPENAI
from isthmus.models.endpoint.refused_size import refused_size
from isthmus.models.port.base import ModelErrorKind, RefusedSize

OPENAI_TEXT = "This model's maximum context length is 30000 tokens. However, "
SAID: list[tuple[str, int | None, int | None]] = [
    (OPENAI_TEXT + "your messages resulted in 35012 tokens. Please reduce the length of the messages.", 30_000, 35_012),
    (OPENAI_TEXT + "you requested 36,000 tokens (35,000 in the messages, 1,000 in the completion).", 29_000, 35_000),
    (OPENAI_TEXT + "you requested 4231 tokens (3975 in your prompt; 256 for the completion).", 29_744, 3_975),
    (OPENAI_TEXT + "your request has 28000 input tokens plus 4096 'max_tokens'. Please reduce one.", 25_904, 28_000),
    (OPENAI_TEXT + "you requested 0 output tokens and the prompt contains at least 35000 input tokens", 30_000, 35_000),
    ("This endpoint's maximum context length is 30000 tokens. However, you requested about 35012 tokens",
     30_000, 35_012),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", 131_072, 537_812),
    ("prompt is too long: 213462 tokens > 200000 maximum", 200_000, 213_462),
    ("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease it", 168_000, 190_000),
    ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", 1_048_575, 1_196_265),
    ("The input token count exceeds the maximum number of tokens allowed 1048576.", 1_048_576, None),
    ("request (35000 tokens) exceeds the available context size (8192 tokens), try increasing it", 8_192, 35_000),
    ("The decoder prompt (length 8825) is longer than the maximum model length of 8192.", 8_192, 8_825),
    ("You passed 5000 input tokens and requested 96 output tokens. However, the model's context length is only 4096"
     " tokens", 4_000, 5_000),
    ("The input (516368 tokens) is longer than the model's context length (262144 tokens).", 262_144, 516_368),
    ("Input length (265330) exceeds model's maximum context length (262144).", 262_144, 265_330),
    ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", 32_768,
     40_000),
    ("Your request exceeded model token limit: 262144 (requested: 300000)", 262_144, 300_000),
    ("prompt token count of 130000 exceeds the limit of 128000", 128_000, 130_000),
    ("Range of input length should be [1, 129024]", 129_024, None),
    ("the model is loaded with context length of only 4096 tokens, which is not enough", 4_096, None),
    ("Prompt has 2000 tokens, but the configured context size is 1500 tokens", 1_500, 2_000),
]  # fmt: skip
SILENT = (
    "Please reduce the length of the messages or completion.",
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model",
    "This model's maximum context length is 3 tokens. However, your request has 8 input tokens.",
)


def error_of(message: str, **fields: Any) -> Any:
    failure = HttpFailure(400, error_object({"error": {"message": message, **fields}}))
    return model_error(failure, ModelEndpoint(OPENAI, OPENAI.base_url, "secret-key"), "some-model", 0)


@pytest.mark.parametrize(("message", "limit", "counted"), SAID, ids=[message[:40] for message, _, _ in SAID])
def test_the_numbers_of_a_refusal_are_read(message: str, limit: int | None, counted: int | None) -> None:
    error = error_of(message)
    assert error.kind is ModelErrorKind.CONTEXT_TOO_LONG
    assert error.size == RefusedSize(limit=limit, counted=counted)


def test_the_fields_of_llama_cpp_count() -> None:
    error = error_of("too large", type="exceed_context_size_error", n_prompt_tokens=35_000, n_ctx=8_192)
    assert (error.kind, error.size) == (ModelErrorKind.CONTEXT_TOO_LONG, RefusedSize(limit=8_192, counted=35_000))


def test_ollama_says_how_much_is_too_much() -> None:
    error = error_of("prompt too long; exceeded max context length by 65590 tokens")
    assert (error.kind, error.size) == (ModelErrorKind.CONTEXT_TOO_LONG, RefusedSize(excess=65_590))


@pytest.mark.parametrize("message", SILENT)
def test_a_refusal_without_a_usable_number_has_none(message: str) -> None:
    error = error_of(message)
    assert (error.kind, error.size) == (ModelErrorKind.CONTEXT_TOO_LONG, None)


@given(st.text(max_size=300), st.dictionaries(st.sampled_from(("n_ctx", "n_prompt_tokens")), st.integers() | st.text()))
def test_any_text_can_be_read(message: str, fields: dict[str, Any]) -> None:
    found = refused_size(message, fields)
    assert found is None or (found.limit or found.excess or 0) >= 0
