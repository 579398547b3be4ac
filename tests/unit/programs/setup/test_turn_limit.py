"""The maximum number of model messages for one prompt: by default, by the settings, and by the command line."""

import json
from pathlib import Path

import pytest

from isthmus.programs.setup.setup import GivenOptions, decide


@pytest.mark.parametrize(
    ("setting", "option", "limit"), [(None, None, 250), (-1, None, None), (7, None, 7), (-1, 3, 3), (7, 300, 300)]
)
def test_the_turn_limit_is_250_and_a_negative_setting_means_none(
    workspace: Path, setting: int | None, option: int | None, limit: int | None
) -> None:
    if setting is not None:
        folder = Path.home() / ".gemini"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "settings.json").write_text(json.dumps({"model": {"maxSessionTurns": setting}}), encoding="utf-8")
    given = GivenOptions(model="demo", workspace=workspace, max_turns=option, ide=False)
    assert decide(given, may_ask=True).max_model_turns == limit
