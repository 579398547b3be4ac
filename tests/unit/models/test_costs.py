"""What a request costs, by the usage that each provider reports."""

from decimal import Decimal
from typing import Any

import pytest

from isthmus.models.anthropic import AnthropicReader
from isthmus.models.gemini import GeminiReader
from isthmus.models.openai.chat_completions import OpenAIReader
from isthmus.models.openai.responses import ResponsesReader
from isthmus.models.port.base import Usage
from isthmus.models.port.costs import ModelCosts, Price, cost, request_cost

CLAUDE = ModelCosts((Price(0, Decimal(2), Decimal(10), Decimal("0.1"), Decimal("2.5"), Decimal(4)),))
GPT = ModelCosts(
    (
        Price(0, Decimal(2), Decimal(10), Decimal("0.1"), Decimal("2.5")),
        Price(272_000, Decimal(4), Decimal(15), Decimal("0.2"), Decimal(5)),
    )
)
GEMINI = ModelCosts((Price(0, Decimal("0.75"), Decimal("3.75"), Decimal("0.075")),))


def anthropic_usage(usage: dict[str, Any]) -> Usage:
    reader = AnthropicReader()
    reader.feed({"type": "message_start", "message": {"usage": {**usage, "output_tokens": 1}}})
    reader.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    return reader.answer().usage


def chat_usage(usage: dict[str, Any]) -> Usage:
    reader = OpenAIReader("openai@x")
    reader.feed({"choices": [], "usage": usage})
    return reader.answer().usage


def responses_usage(usage: dict[str, Any]) -> Usage:
    reader = ResponsesReader("responses-openai@x")
    reader.feed({"type": "response.completed", "response": {"usage": usage}})
    return reader.answer().usage


def gemini_usage(usage: dict[str, Any]) -> Usage:
    reader = GeminiReader()
    reader.feed({"usageMetadata": usage, "candidates": [{"finishReason": "STOP"}]})
    return reader.answer().usage


@pytest.mark.parametrize(
    ("usage", "costs", "expected"),
    [
        (
            anthropic_usage(
                {
                    "input_tokens": 21,
                    "cache_creation_input_tokens": 3_000,
                    "cache_read_input_tokens": 188_086,
                    "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
                    "output_tokens": 393,
                    "service_tier": "standard",
                }
            ),
            CLAUDE,
            # 21 x 2, 1,000 x 2.5, 2,000 x 4, 188,086 x 0.1 and 393 x 10, by the million
            Decimal("0.0332806"),
        ),
        (
            anthropic_usage({"input_tokens": 10, "cache_creation_input_tokens": 100, "output_tokens": 5}),
            CLAUDE,
            Decimal("0.00032"),
        ),
        (
            chat_usage(
                {
                    "prompt_tokens": 2_006,
                    "completion_tokens": 300,
                    "total_tokens": 2_306,
                    "prompt_tokens_details": {"cached_tokens": 1_920, "cache_write_tokens": 80, "audio_tokens": 0},
                    "completion_tokens_details": {"reasoning_tokens": 200, "audio_tokens": 0},
                }
            ),
            GPT,
            # 6 x 2, 80 x 2.5, 1,920 x 0.1, 300 x 10
            Decimal("0.003404"),
        ),
        (
            responses_usage(
                {
                    "input_tokens": 300_000,
                    "input_tokens_details": {"cached_tokens": 200_000, "cache_write_tokens": 50_000},
                    "output_tokens": 1_000,
                    "output_tokens_details": {"reasoning_tokens": 900},
                    "total_tokens": 301_000,
                }
            ),
            GPT,
            # all at the prices above 272,000 tokens: 50,000 x 4, 50,000 x 5, 200,000 x 0.2, 1,000 x 15
            Decimal("0.505"),
        ),
        (
            gemini_usage(
                {
                    "promptTokenCount": 10_000,
                    "cachedContentTokenCount": 8_000,
                    "candidatesTokenCount": 200,
                    "thoughtsTokenCount": 300,
                    "totalTokenCount": 10_500,
                }
            ),
            GEMINI,
            # 2,000 x 0.75, 8,000 x 0.075, 500 x 3.75
            Decimal("0.003975"),
        ),
        (Usage(), CLAUDE, Decimal(0)),
    ],
    ids=["anthropic", "anthropic without lifetimes", "chat", "responses", "gemini", "nothing"],
)
def test_the_cost_is_exact_for_what_each_provider_reports(usage: Usage, costs: ModelCosts, expected: Decimal) -> None:
    assert cost(usage, costs) == expected


def test_the_price_changes_above_its_bound_and_not_at_it() -> None:
    assert cost(Usage(272_000, 0), GPT) == Decimal("0.544")
    assert cost(Usage(272_001, 0), GPT) == Decimal("1.088004")


@pytest.mark.parametrize(
    "usage",
    [Usage(10, 1, cached=5), Usage(10, 1, cache_write=5), Usage(10, 1, cache_write=5, cache_write_1h=5)],
    ids=["cached", "written", "written for an hour"],
)
def test_a_cost_that_needs_an_unknown_price_is_not_guessed(usage: Usage) -> None:
    assert cost(usage, ModelCosts((Price(0, Decimal(2), Decimal(10)),))) is None
    assert cost(usage, None) is None


def test_an_hour_in_the_cache_is_not_guessed_by_the_price_of_five_minutes() -> None:
    costs = ModelCosts((Price(0, Decimal(2), Decimal(10), Decimal(1), Decimal("2.5")),))
    assert cost(Usage(10, 1, cache_write=5), costs) is not None
    assert cost(Usage(10, 1, cache_write=5, cache_write_1h=5), costs) is None


def test_a_cost_is_kept_as_a_whole_number_of_picodollars() -> None:
    assert request_cost(Usage(10, 3, cached=5), CLAUDE) == 40_500_000
    assert request_cost(Usage(1), ModelCosts((Price(0, Decimal("0.0000005"), Decimal(1)),))) == 0
    assert request_cost(Usage(3), ModelCosts((Price(0, Decimal("0.0000005"), Decimal(1)),))) == 2
    assert request_cost(Usage(10, 1, cached=5), ModelCosts((Price(0, Decimal(2), Decimal(10)),))) is None
