"""Lines about models: at the start, and of ``isthmus doctor``."""

import json
from dataclasses import replace
from datetime import date

import pytest

from isthmus.encoding.codec import to_json
from isthmus.errors import IsthmusError
from isthmus.models.choose import choose
from isthmus.parts.model_directory import ModelDirectory
from isthmus.parts.model_notices import efforts_to_choose, model_notices, model_report
from isthmus.session_status import SessionStatus
from isthmus.settings import Settings
from isthmus.settings.model_setting import ModelSetting

KEYS = {"GEMINI_API_KEY": "k" * 20, "ANTHROPIC_API_KEY": "k" * 20, "OPENAI_API_KEY": "k" * 20}
DAY = date(2026, 11, 30)


def notices(model: str, **settings: object) -> tuple[str, ...]:
    return model_notices(choose(model, None, KEYS), replace(Settings(), **settings), KEYS, DAY)


def test_models_that_end_soon_or_have_ended_are_named_at_the_start() -> None:
    assert notices("gemini-2.5-pro", fallback_models=("gpt-4", "claude-sonnet-5-5", "o3")) == (
        "gemini-2.5-pro ends on 2026-12-01. Its successor is gemini-3.8-flash.",
        "gpt-4 ended on 2026-10-23. Its successor is gpt-5.6-sol: choose it with -m or /model.",
        "o3 ends on 2026-12-11. Its successor is gpt-5.6-sol.",
    )
    assert notices("gemini-3.1-flash-lite") == ()  # ends in half a year
    assert notices("gemini-3.8-flash") == notices("demo") == notices("ollama:qwen3") == ()


def test_an_effort_of_the_settings_that_the_model_lacks_is_said_with_what_is_sent() -> None:
    assert notices("gemini-3.8-flash", thinking_effort="max") == (
        "isthmus.thinkingEffort is max, but gemini-3.8-flash has only low, medium, high: high is sent",
    )
    assert notices("gpt-4o", thinking_effort="low")[-1] == (
        "isthmus.thinkingEffort is low, but gpt-4o has no levels of thinking"
    )
    assert notices("claude-sonnet-5-5", thinking_effort="xhigh") == ()


@pytest.mark.parametrize(
    ("model", "chosen", "effort", "levels"),
    [
        ("gemini-3.8-flash", None, "default", ["low", "medium", "high"]),
        ("claude-sonnet-5-5", "max", "max", ["low", "medium", "high", "xhigh", "max"]),
        ("gemini-3.8-flash", "max", "high", ["low", "medium", "high"]),
        ("gpt-99", "max", "high", ["low", "medium", "high"]),
        ("gpt-4o", "max", "", []),
    ],
)
def test_a_client_is_offered_the_levels_of_the_model(
    model: str, chosen: str | None, effort: str, levels: list[str]
) -> None:
    found = efforts_to_choose(choose(model, None, KEYS), replace(Settings(), thinking_effort=chosen), KEYS)
    assert json.loads(json.dumps(to_json(SessionStatus(effort=found[0], efforts=found[1])))) == {
        "effort": effort,
        "efforts": levels,
    }


def test_the_report_has_the_models_facts_and_the_age_of_the_table() -> None:
    first, last = model_report(replace(Settings(), model="claude-sonnet-5-5"), KEYS, DAY)
    assert first == (
        "claude-sonnet-5-5 (your settings name it): requests of up to 1,000,000 tokens, answers of up to 128,000;"
        " effort low, medium, high, xhigh, max (default high)"
    )
    assert last.startswith("Table of models of 20")
    assert "npm opencode-linux-x64 1." in last
    own = (ModelSetting("claude-sonnet-5-5", 300_000),)
    first, _ = model_report(replace(Settings(), model="claude-sonnet-5-5", models=own), KEYS, DAY)
    assert "requests of up to 300,000 tokens" in first
    first, _ = model_report(replace(Settings(), model="gpt-99"), KEYS, DAY)
    assert first == ("gpt-99 (your settings name it): the table does not know it; isthmus.models in your settings can")


def test_a_client_that_names_a_model_and_an_effort_it_lacks_is_refused() -> None:
    directory = ModelDirectory(choose("gemini-3.8-flash", None, KEYS), KEYS)
    directory.check("claude-opus-4-6", "max")
    directory.check("gpt-99", "max")
    directory.check("gemini-3.8-flash", "default")
    for name in ("gemini-3.8-flash", "gemini:gemini-3.7-flash", "claude-haiku-4-5"):
        with pytest.raises(IsthmusError, match="has no effort xhigh; expected one of low, medium, high, default"):
            directory.check(name, "xhigh")
