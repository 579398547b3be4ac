"""Facts about models in the settings: ``isthmus.models``."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from isthmus.settings import Settings, SettingsError, load_settings
from isthmus.settings.model_setting import ModelSetting


def loaded(home: Path, value: Any) -> Settings:
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({"isthmus": {"models": value}}))
    return load_settings(home / "project", home, {})


def test_limits_and_exact_prices_are_read_by_the_names_of_models(tmp_path: Path) -> None:
    settings = loaded(
        tmp_path,
        {
            "gpt-6.2-sol": {"prices": {"input": 0.1, "output": "10", "cacheRead": "0.01"}},
            "openai:qwen3-coder": {"contextWindow": 262_144, "maxOutputTokens": 65_536, "media": ["image"]},
        },
    )
    assert settings.models == (
        ModelSetting("gpt-6.2-sol", None, None, Decimal("0.1"), Decimal(10), Decimal("0.01")),
        ModelSetting("openai:qwen3-coder", 262_144, 65_536, media=frozenset(("image",))),
    )
    assert settings.unused == ()
    assert settings.ignored == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "expected an object with an object for each model"),
        ({"m": 3}, "expected an object with an object for each model"),
        ({"m": {"contextWindow": 0}}, "isthmus.models.m.contextWindow is 0; expected a number of tokens"),
        ({"m": {"contextWindow": True}}, "expected a number of tokens"),
        ({"m": {"window": 5}}, "has 'window'; expected only contextWindow, maxOutputTokens, prices, media"),
        ({"m": {"media": "image"}}, "expected a list of image, pdf, audio, video"),
        ({"m": {"media": ["picture"]}}, "expected a list of image, pdf, audio, video"),
        ({"m": {"prices": {"input": 1}}}, 'expected an object with "input" and "output"'),
        ({"m": {"prices": {"input": 1, "output": "much"}}}, "expected US dollars for a million tokens"),
        ({"m": {"prices": {"input": -1, "output": 1}}}, "expected US dollars for a million tokens"),
        ({"m": {"prices": {"input": "NaN", "output": 1}}}, "expected US dollars for a million tokens"),
        ({"m": {"prices": {"input": 1, "output": 1, "cached": 1}}}, "has 'cached'; expected only input, output"),
    ],
)
def test_another_form_is_refused_with_what_was_expected(value: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"settings\.json: isthmus\.models") as error:
        loaded(tmp_path, value)
    assert said in str(error.value)
