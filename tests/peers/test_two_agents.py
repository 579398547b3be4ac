"""Two different real agents at one editor: Gemini CLI and Qwen Code, attached to one companion at once."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.coding_cli import DIALOG, SECONDS
from support.gemini_cli import GeminiCli, gemini_cli
from support.isthmus_program import companion_program, user
from support.qwen_cli import QwenCode, qwen_code
from support.scripted_wire import Call
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

BEFORE = "one\ntwo\nthree\n"


@pytest.fixture
def files(workspace: Path) -> tuple[Path, Path]:
    paths = workspace / "a.py", workspace / "b.py"
    for path in paths:
        path.write_text(BEFORE, encoding="utf-8")
    return paths


@asynccontextmanager
async def both_agents(workspace: Path) -> AsyncGenerator[tuple[GeminiCli, QwenCode]]:
    with companion_program(workspace, "--open", "a.py:2:3"):
        async with gemini_cli(workspace) as gemini, qwen_code(workspace) as qwen:
            await qwen.sees_file("a.py")
            yield gemini, qwen


async def reviews(workspace: Path, *agents: str) -> list[dict[str, Any]]:
    """Return the waiting reviews, once there is one of each of these agents."""

    async def all_there() -> list[dict[str, Any]]:
        waiting: list[dict[str, Any]] = (await user("diffs", folder=workspace))["diffs"]
        assert sorted(review["agent"] for review in waiting) == sorted(agents)
        return waiting

    return await eventually_async(all_there, SECONDS, what=f"reviews of {agents}")


async def test_two_agents_see_the_same_and_their_edits_are_answered_each_for_itself(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    async with both_agents(workspace) as (gemini, qwen):
        await _both_see_the_same_context(gemini, qwen, workspace, files)
        await _an_answer_goes_to_the_agent_that_asked_and_the_other_goes_on_waiting(gemini, qwen, workspace, files)
        await _edits_to_one_file_are_reviewed_one_after_the_other(gemini, qwen, workspace, files)


async def _both_see_the_same_context(
    gemini: GeminiCli, qwen: QwenCode, workspace: Path, files: tuple[Path, Path]
) -> None:
    a, _ = files
    assert await gemini.ask("first") == {"activeFile": {"path": str(a), "cursor": {"line": 2, "character": 3}}}
    assert await qwen.ask("first") == f"Active file:\n  Path: {a}\n  Cursor: line 2, character 3"
    await user("select", "b.py:2", folder=workspace)
    await gemini.sees_files(2)
    await qwen.sees_file("b.py")
    assert (await gemini.ask("second"))["changes"]["activeFileChanged"]["selectedText"] == "two\n"
    assert "Selected text:\n```\ntwo\n" in await qwen.ask("second")
    agents = (await user("status", folder=workspace))["agents"]
    assert sorted(agent["title"] for agent in agents) == ["Gemini CLI", "Qwen Code"]


async def _an_answer_goes_to_the_agent_that_asked_and_the_other_goes_on_waiting(
    gemini: GeminiCli, qwen: QwenCode, workspace: Path, files: tuple[Path, Path]
) -> None:
    a, b = files
    await gemini.propose(Call("write_file", {"file_path": str(a), "content": "of Gemini CLI\n"}), "Gemini, done.")
    await qwen.rewrite(b, "of Qwen Code\n", "Qwen, done.")
    await reviews(workspace, "Gemini CLI", "Qwen Code")
    await user("accept", "b.py", "--content", "-", folder=workspace, text="reviewed\n")
    await qwen.shows("Qwen, done.")
    assert b.read_text(encoding="utf-8") == "reviewed\n"
    await reviews(workspace, "Gemini CLI")
    assert a.read_text(encoding="utf-8") == BEFORE
    await gemini.shows(DIALOG)
    await user("accept", "a.py", folder=workspace)
    await gemini.shows("Gemini, done.")
    assert a.read_text(encoding="utf-8") == "of Gemini CLI\n"


async def _edits_to_one_file_are_reviewed_one_after_the_other(
    gemini: GeminiCli, qwen: QwenCode, workspace: Path, files: tuple[Path, Path]
) -> None:
    _, b = files
    await qwen.rewrite(b, "of Qwen Code\n", "Qwen, done again.")
    await reviews(workspace, "Qwen Code")
    again = Call("write_file", {"file_path": str(b), "content": "of Gemini CLI again\n"})
    await gemini.propose(again, "Gemini, done again.")
    await reviews(workspace, "Gemini CLI", "Qwen Code")
    await user("accept", "b.py", folder=workspace)
    await qwen.shows("Qwen, done again.")
    assert b.read_text(encoding="utf-8") == "of Qwen Code\n"
    (review,) = await reviews(workspace, "Gemini CLI")
    assert review["new_content"] == "of Gemini CLI again\n"

    async def is_accepted() -> bool:  # once the companion has shown what Qwen Code wrote meanwhile
        return bool(await user("accept", "b.py", folder=workspace))

    await eventually_async(is_accepted, SECONDS, what="the review of a changed file is accepted at the second look")
    await gemini.shows("Gemini, done again.")
    assert b.read_text(encoding="utf-8") == "of Gemini CLI again\n"
