"""Budgets in the settings."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.settings import SettingsError, load_settings

DOLLAR = 10**12


def written(home: Path, budget: Any) -> None:
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({"isthmus": {"budget": budget}}), "utf-8")


def test_budgets_are_amounts_of_dollars(workspace: Path) -> None:
    written(Path.home(), {"turn": "2.50", "session": 10, "day": 0.5})
    settings = load_settings(workspace, Path.home(), {})
    assert (settings.turn_budget, settings.session_budget, settings.day_budget) == (
        5 * DOLLAR // 2,
        10 * DOLLAR,
        DOLLAR // 2,
    )
    written(Path.home(), {"turn": "none"})
    settings = load_settings(workspace, Path.home(), {})
    assert (settings.turn_budget, settings.session_budget, settings.day_budget) == (None, None, None)


@pytest.mark.parametrize("value", [-1, True, "five", [5], {"usd": 5}, 1e-30, float("inf"), "1,5"])
def test_what_is_no_amount_is_refused(value: Any, workspace: Path) -> None:
    written(Path.home(), {"session": value})
    with pytest.raises(SettingsError, match=r'isthmus\.budget\.session.*expected US dollars, e\.g\. 2\.50, or "none"'):
        load_settings(workspace, Path.home(), {})
