"""Prohibitions in settings for the sessions of folders, and the trust that decides whether a project's rules count."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.programs.setup.folder_rules import RulesOfFolders
from isthmus.settings import FolderRules, settings_file

pytestmark = pytest.mark.anyio

HOOK: dict[str, Any] = {"hooks": {"AnEventOfLater": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}}


def write_settings(folder: Path, values: dict[str, Any]) -> None:
    (folder / ".gemini").mkdir(parents=True)
    (folder / ".gemini" / "settings.json").write_text(json.dumps(values), "utf-8")


def rules_of(tmp_path: Path, trusted: set[str], met: list[str]) -> RulesOfFolders:
    """Return the rules of a program started in ``start``; an editor's trust is known once it has connected."""

    async def meet(folder: Path) -> None:
        met.append(folder.name)

    def trusts(folder: Path) -> bool:
        return folder.name in trusted and folder.name in met

    return RulesOfFolders(tmp_path / "start", tmp_path / "home", {}, trusts, meet)


async def test_each_folder_has_its_own_rules_and_those_of_the_start_folder_hold_below_it(tmp_path: Path) -> None:
    write_settings(tmp_path / "start", {"security": {"disableYoloMode": True}, "tools": {"core": ["glob"]}})
    write_settings(tmp_path / "start" / "below", {"security": {"disableAlwaysAllow": True}})
    write_settings(tmp_path / "other", {"tools": {"exclude": ["glob"]}})
    met: list[str] = []
    rules = rules_of(tmp_path, set(), met)
    start, below = await rules.of(tmp_path / "start"), await rules.of(tmp_path / "start" / "below")
    other = await rules.of(tmp_path / "other")
    assert (start.yolo_refusal, start.keeps_answers, len(start.tools.core)) == (below.yolo_refusal, True, 1)
    assert start.yolo_refusal is not None
    assert (below.tools, below.keeps_answers) == (start.tools, False)
    assert other == FolderRules(other.tools)
    assert [Path(rule.where).parent.parent.name for rule in other.tools.excluded] == ["other"]
    assert met == []


@pytest.mark.parametrize("is_trusted", [False, True])
async def test_a_projects_guards_count_where_it_is_trusted_and_its_editor_is_asked_first(
    tmp_path: Path, is_trusted: bool
) -> None:
    write_settings(tmp_path / "start", {})
    write_settings(tmp_path / "other", HOOK)
    met: list[str] = []
    rules = rules_of(tmp_path, {"other"} if is_trusted else set(), met)
    assert ((await rules.of(tmp_path / "other")).yolo_refusal is not None) is is_trusted
    assert met == ["other"]
    assert await rules.of(tmp_path / "start") == FolderRules()
    assert met == ["other"], "nobody is asked where it makes no difference"


async def test_a_changed_settings_file_counts_for_the_next_task(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    rules = rules_of(tmp_path, set(), [])
    assert await rules.of(tmp_path / "start") == FolderRules()
    write_settings(tmp_path / "start", {"security": {"disableYoloMode": True}})
    assert (await rules.of(tmp_path / "start")).yolo_refusal is not None
    write_settings(tmp_path / "home", {"security": {"disableAlwaysAllow": True}})
    assert not (await rules.of(tmp_path / "start")).keeps_answers
    (tmp_path / "start" / ".gemini" / "settings.json").unlink()
    assert (await rules.of(tmp_path / "start")).yolo_refusal is None


async def test_files_are_read_once_for_both_answers_about_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(tmp_path / "start", {"security": {"disableYoloMode": True}})
    read: list[Path] = []

    def noted(path: Path, maximum_bytes: int) -> bytes:
        read.append(path)
        return path.read_bytes()

    monkeypatch.setattr(settings_file, "read_regular", noted)
    await rules_of(tmp_path, set(), []).of(tmp_path / "start")
    assert len(read) == len(set(read))
