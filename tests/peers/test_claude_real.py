"""One scenario on the strict client, and on the real Claude Code if ISTHMUS_CLAUDE is its path."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.ide.claude.discovery.lock_file import claude_variables
from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from isthmus.ide.reviews.review import DiffReview
from support.claude_code import PROGRAM, CliInATerminal, cli_in_a_terminal
from support.companion import RunningCompanion, running_companion
from support.isthmus_program import companion_program, user
from support.waiting import eventually_async

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("kind", ["strict", *(["real"] if PROGRAM else [])]),
    pytest.mark.timeout(300),
]


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    return path


@asynccontextmanager
async def _cli_beside(file: Path, kind: str) -> AsyncGenerator[tuple[RunningCompanion, CliInATerminal]]:
    """Start a companion that has the file open, and a CLI that is connected to it."""
    async with (
        running_companion(file.parent) as companion,
        cli_in_a_terminal(kind, file.parent, companion.ready.variables) as cli,
    ):
        await companion.editor.open_file(str(file))
        await cli.sees_file(file.name)
        yield companion, cli


async def _review(companion: RunningCompanion) -> DiffReview:
    return (await eventually_async(lambda: companion.editor.open_reviews, 60, what="a review"))[0]


async def _no_review(companion: RunningCompanion) -> None:
    await eventually_async(lambda: not companion.editor.open_reviews, 60, what="no review")


@pytest.mark.requirement("CLD-009", "CLD-011", "CLD-017", "CLD-024")
async def test_it_sees_what_is_selected_and_mentioned(kind: str, file: Path) -> None:
    async with _cli_beside(file, kind) as (companion, cli):
        await companion.editor.open_file(str(file), Range(Position(0, 0), Position(2, 0)))
        await cli.sees_selected_lines(2)
        await companion.editor.open_file(str(file), Range(Position(1, 0), Position(1, 3)))
        await cli.sees_selected_lines(1)
        companion.editor.mention(str(file), 0, 1)
        await cli.mentions("a.py", 1, 2)


@pytest.mark.requirement("CLD-040", "CLD-045")
async def test_an_edit_that_is_changed_in_the_editor_is_written_as_it_was_accepted(kind: str, file: Path) -> None:
    async with _cli_beside(file, kind) as (companion, cli):
        await cli.propose(file, "two", "three")
        review = await _review(companion)
        assert (review.title, review.proposed) == ("Claude Code", "one\nthree\n")
        companion.editor.edit_diff(review.id, "one\nmine\n")
        companion.editor.accept_diff(review.id)
        await cli.ended()
        assert file.read_text(encoding="utf-8") == "one\nmine\n"


@pytest.mark.requirement("CLD-029", "CLD-046")
async def test_an_edit_that_is_rejected_in_the_editor_is_not_written(kind: str, file: Path) -> None:
    async with _cli_beside(file, kind) as (companion, cli):
        await cli.propose(file, "two", "three", is_rejected=True)
        companion.editor.reject_diff((await _review(companion)).id)
        await cli.ended()
        assert file.read_text(encoding="utf-8") == "one\ntwo\n"


@pytest.mark.requirement("CLD-064", "CLD-074")
@pytest.mark.parametrize("yes", [True, False], ids=["yes", "no"])
async def test_an_edit_that_is_answered_in_the_terminal_leaves_the_editor(kind: str, file: Path, yes: bool) -> None:
    async with _cli_beside(file, kind) as (companion, cli):
        await cli.propose(file, "two", "three", is_rejected=not yes)
        await _review(companion)
        await cli.answer(yes=yes)
        await _no_review(companion)
        await cli.ended()
        assert file.read_text(encoding="utf-8") == ("one\nthree\n" if yes else "one\ntwo\n")


async def test_a_second_edit_in_the_same_session_is_reviewed_too(kind: str, file: Path) -> None:
    async with _cli_beside(file, kind) as (companion, cli):
        for old, new in (("two", "three"), ("three", "four")):
            await cli.propose(file, old, new)
            companion.editor.accept_diff((await _review(companion)).id)
            await cli.ended()
        assert file.read_text(encoding="utf-8") == "one\nfour\n"


@pytest.mark.requirement("CLD-056", "CLD-057")
async def test_what_an_edit_broke_is_known_in_the_next_turn(kind: str, file: Path) -> None:
    async with _cli_beside(file, kind) as (companion, cli):
        await cli.propose(file, "two", "three")
        companion.editor.accept_diff((await _review(companion)).id)
        await cli.ended()
        at = Range(Position(1, 0), Position(1, 5))
        found = Diagnostic(str(file), at, Severity.ERROR, "three is not a name", "linter", "E1")
        companion.editor.set_diagnostics(str(file), [found])
        await cli.propose(file, "three", "four")
        companion.editor.accept_diff((await _review(companion)).id)
        await cli.ended()
        await cli.learned("three is not a name")


async def test_it_finds_a_restarted_companion_again(kind: str, workspace: Path, file: Path) -> None:
    with companion_program(workspace) as companion:
        variables = claude_variables(companion.ready["servers"]["claude"]["port"])
        async with cli_in_a_terminal(kind, workspace, variables) as cli:
            await user("open", "a.py", folder=workspace)
            await cli.sees_file("a.py")
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            (workspace / "other.py").touch()
            with companion_program(workspace):
                await cli.found_again()
                await user("open", "other.py", folder=workspace)
                await cli.sees_file("other.py")
