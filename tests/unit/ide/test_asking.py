"""Asking the person on every surface at once: the editor's dialog and their terminal, the first answer counts."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.editor import Capability, EditorError
from isthmus.ide.person.asking import Asking
from isthmus.ide.person.questions import Question
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class AskingEditor(HeadlessEditor):
    """A headless editor that has a dialog: `answers` is what the person does in it."""

    def __init__(self, folder: Path) -> None:
        super().__init__((str(folder),))
        self.shown: list[tuple[str, str]] = []
        self.closed: list[str] = []
        self.answers: asyncio.Queue[bool | EditorError] = asyncio.Queue()

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        return {}

    async def confirm(self, title: str, text: str) -> bool:
        self.shown.append((title, text))
        try:
            answer = await self.answers.get()
        except asyncio.CancelledError:
            self.closed.append(title)
            raise
        if isinstance(answer, EditorError):
            raise answer
        return answer


@pytest.fixture
def editor(workspace: Path) -> AskingEditor:
    return AskingEditor(workspace)


async def _asked(asking: Asking) -> Question:
    (question,) = await asking.wait(30)
    return question


@pytest.mark.parametrize("yes", [True, False])
async def test_an_answer_in_the_editor_counts_and_takes_the_question_from_the_terminal(
    editor: AskingEditor, yes: bool
) -> None:
    asking = Asking(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", "print(1)"))
    question = await _asked(asking)
    editor.answers.put_nowait(yes)
    assert await asyncio.wait_for(answer, 30) is yes
    assert editor.shown == [("May I?", "print(1)")]
    assert asking.answer(question.id, not yes) is None
    assert asking.open_questions == ()


@pytest.mark.parametrize("yes", [True, False])
async def test_an_answer_in_the_terminal_counts_and_closes_the_dialog(editor: AskingEditor, yes: bool) -> None:
    asking = Asking(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", "print(1)"))
    question = await _asked(asking)
    await eventually_async(lambda: editor.shown, what="the dialog")
    assert asking.answer(question.id, yes) is not None
    assert await asyncio.wait_for(answer, 30) is yes
    await eventually_async(lambda: editor.closed == ["May I?"], what="the dialog is closed")
    assert asking.answer(question.id, True) is None


async def test_a_client_that_cancels_closes_the_dialog_and_leaves_no_question(editor: AskingEditor) -> None:
    asking = Asking(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", ""))
    question = await _asked(asking)
    await eventually_async(lambda: editor.shown, what="the dialog")
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    assert answer.cancelled()
    await eventually_async(lambda: editor.closed == ["May I?"], what="the dialog is closed")
    assert asking.open_questions == ()
    assert asking.answer(question.id, True) is None


async def test_a_dialog_that_fails_is_no_answer_and_the_terminal_still_has_the_question(editor: AskingEditor) -> None:
    asking = Asking(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", ""))
    question = await _asked(asking)
    editor.answers.put_nowait(EditorError("the editor is busy"))
    await eventually_async(lambda: editor.messages, what="where to answer")
    assert f"isthmus ide answer {question.id}" in editor.messages[0]
    asking.answer(question.id, True)
    assert await asyncio.wait_for(answer, 30) is True


async def test_an_editor_without_dialogs_says_where_the_answer_is_given(workspace: Path) -> None:
    editor = HeadlessEditor((str(workspace),))
    asking = Asking(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", ""))
    question = await _asked(asking)
    await eventually_async(lambda: editor.messages, what="where to answer")
    assert editor.messages == (f"May I?: isthmus ide answer {question.id} yes|no",)
    asking.answer(question.id, False)
    assert await asyncio.wait_for(answer, 30) is False


async def test_no_answer_in_time_is_a_no(editor: AskingEditor) -> None:
    times = iter([0.0])
    asking = Asking(editor, lambda: next(times, 1_000_000.0))  # asked at 0, and then it is late already
    assert await asyncio.wait_for(asking.ask("An agent", "May I?", ""), 30) is False
    assert asking.open_questions == ()


async def test_the_end_of_the_companion_is_a_no_to_every_question(editor: AskingEditor) -> None:
    asking = Asking(editor)
    answers = [asyncio.create_task(asking.ask("An agent", "May I?", "")) for _ in range(2)]
    await eventually_async(lambda: len(editor.shown) == 2, what="two dialogs")
    asking.stop()
    assert await asyncio.wait_for(asyncio.gather(*answers), 30) == [False, False]
    await eventually_async(lambda: len(editor.closed) == 2, what="both dialogs are closed")
    assert await asking.ask("An agent", "May I?", "") is False
    assert len(editor.shown) == 2


async def test_a_title_is_one_line_whatever_a_client_calls_itself(editor: AskingEditor) -> None:
    asking = Asking(editor)
    answer = asyncio.create_task(asking.ask("x", "Evil\n\x1b[2J agent wants\tthis", "a\nb"))
    question = await _asked(asking)
    assert (question.title, question.text) == ("Evil agent wants this", "a\nb")
    asking.answer(question.id, False)
    await asyncio.wait_for(answer, 30)


async def test_the_dialog_shows_what_is_hidden_in_the_text_and_reorders_nothing(editor: AskingEditor) -> None:
    asking = Asking(editor)
    code = "run()  # \u202e)(esrever \x1b[8m\r\nnext\t\U000e0041"
    answer = asyncio.create_task(asking.ask("x", "\u202eAn agent", code))
    question = await _asked(asking)
    await eventually_async(lambda: editor.shown, what="the dialog")
    assert editor.shown == [("\\u202eAn agent", "run()  # \\u202e)(esrever \u241b[8m\nnext\t\\U000e0041")]
    assert question.text == code
    asking.answer(question.id, False)
    await asyncio.wait_for(answer, 30)
