"""What an agent wrote without asking, listed, kept and undone in a terminal, of a companion that runs as a program."""

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from support.isthmus_program import CompanionProgram, companion_program, isthmus
from support.written_changes import User, watching_agent

pytestmark = pytest.mark.anyio

OLD = "one\ntwo\nthree\nfour\nfive\n"
NEW = "ONE\ntwo\nthree\nfour\nFIVE\n"


async def _ide(workspace: Path, *arguments: str) -> tuple[int, str]:
    done = await asyncio.to_thread(isthmus, "ide", *arguments, folder=workspace)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
async def companion(workspace: Path) -> AsyncGenerator[CompanionProgram]:
    """Yield a companion with an attached agent, which has written two files, one of them new."""
    (workspace / "a.txt").write_text(OLD, encoding="utf-8")
    with companion_program(workspace, "--allow-agent-accept") as companion:
        async with watching_agent(companion):
            await User(companion).ask("written_turn", agent="Claude Code", title="Shout")
            (workspace / "a.txt").write_text(NEW, encoding="utf-8")
            (workspace / "new.txt").write_text("created", encoding="utf-8")
            yield companion


async def test_changes_are_listed_by_turn_as_a_table_and_as_json(workspace: Path, companion: CompanionProgram) -> None:
    status, text = await _ide(workspace, "changes")
    heading, *files = text.splitlines()
    assert (status, heading.startswith("Turn 1, ")) == (0, True)
    assert heading.endswith(' Claude Code "Shout": +3 -2, may go on')
    assert files == ["  a.txt    +2 -2, 2 hunks", "  new.txt  +1 -0, created"]
    assert "Written without asking: 2 files in 1 turns" in (await _ide(workspace, "status"))[1]
    status, text = await _ide(workspace, "changes", "--json")
    assert [turn["number"] for turn in json.loads(text)["turns"]] == [1]


async def test_hunks_are_numbered_in_the_diff_and_undone_by_number(
    workspace: Path, companion: CompanionProgram
) -> None:
    status, text = await _ide(workspace, "changes", "a.txt")
    path = str(workspace / "a.txt").lstrip("/")
    assert text.splitlines() == [
        f"--- a/{path}",
        f"+++ b/{path}",
        "@@ -1,1 +1,1 @@ hunk 1 of 2 (turn 1)",
        "-one",
        "+ONE",
        " two",
        " three",
        " four",
        "@@ -5,1 +5,1 @@ hunk 2 of 2 (turn 1)",
        " two",
        " three",
        " four",
        "-five",
        "+FIVE",
    ], text
    status, text = await _ide(workspace, "undo", "a.txt", "--hunks", "2")
    assert (status, text.splitlines()[-1]) == (0, "Take it back with: isthmus ide redo 1")
    assert (workspace / "a.txt").read_text(encoding="utf-8") == NEW.replace("FIVE", "five")
    assert "undone, take it back with: isthmus ide redo 1" in (await _ide(workspace, "changes", "a.txt"))[1]
    assert (await _ide(workspace, "redo"))[0] == 0
    assert (workspace / "a.txt").read_text(encoding="utf-8") == NEW


async def test_all_of_it_is_kept_or_undone(workspace: Path, companion: CompanionProgram) -> None:
    assert "No newline at end of file" in (await _ide(workspace, "changes", "--diff"))[1]
    status, text = await _ide(workspace, "undo", "--all")
    assert (status, (workspace / "new.txt").exists()) == (0, False), text
    assert (workspace / "a.txt").read_text(encoding="utf-8") == OLD
    await _ide(workspace, "redo")
    status, text = await _ide(workspace, "keep", "--turn", "1")
    assert (status, len(text.splitlines())) == (0, 2)
    assert (await _ide(workspace, "changes"))[1].startswith("Nothing was written since ")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("undo",), "expected a FILE, --turn N or --all"),
        (("keep", "--all", "--turn", "1"), "--all is everything"),
        (("undo", "--turn", "1", "--hunks", "1"), "name the FILE, too"),
        (("undo", "a.txt", "--hunks", ""), "without --hunks, all are meant"),
        (("undo", "a.txt", "--hunks", "7"), "no hunk has the number 7; the hunks are 1-2"),
        (("undo", "--turn", "9"), "there is no turn 9"),
        (("keep", "missing.txt"), "waits for you"),
        (("changes", "missing.txt"), "waits for you"),
        (("redo",), "there is no undo to take back"),
        (("redo", "5"), "there is no undo 5"),
    ],
)
async def test_a_decision_that_is_not_clear_changes_nothing(
    workspace: Path, companion: CompanionProgram, arguments: tuple[str, ...], problem: str
) -> None:
    status, text = await _ide(workspace, *arguments)
    assert (status != 0, problem in text) == (True, True), text
    assert (workspace / "a.txt").read_text(encoding="utf-8") == NEW
