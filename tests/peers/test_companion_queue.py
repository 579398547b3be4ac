"""Agents of two protocols that edit the same file at one editor: one review after the other, over real connections."""

import asyncio
from pathlib import Path

import pytest

from isthmus.files.locations import data_directory
from isthmus.ide.control import control_client
from isthmus.ide.editor import EditorError
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import DiffReview
from support.claude_cli import ClaudeCli, Edit, claude_cli
from support.companion import REAL_CLIENT, RunningCompanion, attached_agent, running_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("old\n", encoding="utf-8")
    return path


async def _shown(companion: RunningCompanion, title: str) -> DiffReview:
    """Return the review on the screen, once it is this agent's; there is never a second one."""

    def the_one() -> DiffReview | None:
        assert len(companion.editor.open_reviews) <= 1
        return next((review for review in companion.editor.open_reviews if review.title == title), None)

    review = await eventually_async(the_one, what=f"the review of {title}")
    assert review is not None
    return review


async def _editing(companion: RunningCompanion, cli: ClaudeCli, file: Path, text: str) -> "asyncio.Task[Edit]":
    waiting = len(await _waiting(companion))
    editing = asyncio.create_task(cli.edit(file, text))

    async def asked() -> bool:
        return len(await _waiting(companion)) == waiting + 1

    await eventually_async(asked, what="the review is asked for")
    return editing


async def _waiting(companion: RunningCompanion) -> list[str]:
    """Return all waiting reviews, also those that are not shown yet, as the user's commands list them."""
    (running,) = control_client.running()
    answer = await asyncio.to_thread(control_client.ask, running, "diffs")
    return [review["id"] for review in answer["diffs"]]


async def test_a_second_agent_waits_for_the_first_and_both_are_written_in_order(workspace: Path, file: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        claude_cli(workspace) as claude,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as gemini,
    ):
        await gemini.open_diff(file, "of gemini\n")
        editing = await _editing(companion, claude, file, "of claude\n")
        first = await _shown(companion, "Gemini CLI")
        companion.editor.accept_diff(first.id)
        assert (await gemini.notified("ide/diffAccepted"))["content"] == "of gemini\n"
        file.write_text("of gemini\n", encoding="utf-8")
        second = await _shown(companion, "Claude Code")
        assert not editing.done()
        companion.editor.edit_diff(second.id, "of both\n")
        companion.editor.accept_diff(second.id)
        assert await editing == Edit("written", "of both\n", True)
        assert file.read_text(encoding="utf-8") == "of both\n"
        assert len(gemini.named("ide/diffAccepted")) == 1
        assert gemini.named("ide/diffRejected") == []


async def test_a_waiting_edit_that_is_answered_in_its_terminal_is_never_shown(workspace: Path, file: Path) -> None:
    async with (
        running_companion(workspace) as companion,
        claude_cli(workspace) as claude,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as gemini,
    ):
        await gemini.open_diff(file, "of gemini\n")
        terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        editing = asyncio.create_task(claude.edit(file, "of claude\n", terminal))
        await eventually_async(lambda: _count(companion, 2), what="both reviews")
        terminal.set_result(True)
        assert await editing == Edit("written", "of claude\n")
        (left,) = companion.editor.open_reviews
        assert left.title == "Gemini CLI"
        result = await gemini.close_diff(file, suppressNotification=True)
        assert not result.is_error


async def test_an_edit_that_cannot_be_shown_in_its_turn_stays_a_question_in_the_terminal(
    workspace: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        running_companion(workspace) as companion,
        claude_cli(workspace) as claude,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as gemini,
    ):
        await gemini.open_diff(file, "of gemini\n")
        terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        editing = asyncio.create_task(claude.edit(file, "of claude\n", terminal))
        await eventually_async(lambda: _count(companion, 2), what="both reviews")

        async def refuse(review: DiffReview) -> None:
            raise EditorError("no window")

        monkeypatch.setattr(companion.editor, "open_diff", refuse)
        companion.editor.reject_diff(companion.editor.open_reviews[0].id)
        await gemini.notified("ide/diffRejected")
        await eventually_async(lambda: _count(companion, 0), what="no review is left")
        assert not editing.done()
        terminal.set_result(True)
        assert await editing == Edit("written", "of claude\n")


async def test_a_vanished_claude_cli_leaves_what_was_typed_and_the_next_review_is_shown(
    workspace: Path, file: Path
) -> None:
    async with (
        running_companion(workspace) as companion,
        claude_cli(workspace) as claude,
        attached_agent(companion.url, companion.token, REAL_CLIENT) as gemini,
    ):
        editing = await _editing(companion, claude, file, "of claude\n")
        await gemini.open_diff(file, "of gemini\n")
        first = await _shown(companion, "Claude Code")
        companion.editor.edit_diff(first.id, "typed\n")
        claude.drop()
        await _shown(companion, "Gemini CLI")
        (kept,) = KeptTexts(data_directory() / "kept").paths()
        assert Path(kept).read_text(encoding="utf-8") == "typed\n"
        await eventually_async(lambda: any(kept in text for text in companion.editor.messages), what="a message")
        editing.cancel()
        await asyncio.wait({editing})


async def _count(companion: RunningCompanion, count: int) -> bool:
    return len(await _waiting(companion)) == count
