"""Questions to the user on every surface at once: the editor's dialog and their terminal, the first answer counts."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.control.asking import CompanionQuestions
from isthmus.ide.control.questions import ClientQuestion
from isthmus.ide.editor import Capability, Consent, EditorError
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class AskingEditor(HeadlessEditor):
    """A headless editor with a dialog: `answers` are the user's actions in it."""

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


async def _asked(asking: CompanionQuestions) -> ClientQuestion:
    (question,) = await asking.wait(30)
    return question


@pytest.mark.parametrize("yes", [True, False])
async def test_an_answer_in_the_editor_counts_and_takes_the_question_from_the_terminal(
    editor: AskingEditor, yes: bool
) -> None:
    asking = CompanionQuestions(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", "print(1)"))
    question = await _asked(asking)
    editor.answers.put_nowait(yes)
    assert await asyncio.wait_for(answer, 30) is yes
    assert editor.shown == [("May I?", "print(1)")]
    assert asking.answer(question.id, Consent.of(yes=not yes)) is None
    assert asking.open_questions == ()


@pytest.mark.parametrize("yes", [True, False])
async def test_an_answer_in_the_terminal_counts_and_closes_the_dialog(editor: AskingEditor, yes: bool) -> None:
    asking = CompanionQuestions(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", "print(1)"))
    question = await _asked(asking)
    await eventually_async(lambda: editor.shown, what="the dialog")
    assert asking.answer(question.id, Consent.of(yes=yes)) is not None
    assert await asyncio.wait_for(answer, 30) is yes
    await eventually_async(lambda: editor.closed == ["May I?"], what="the dialog is closed")
    assert asking.answer(question.id, Consent.YES) is None


async def test_a_client_that_cancels_closes_the_dialog_and_leaves_no_question(editor: AskingEditor) -> None:
    asking = CompanionQuestions(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", ""))
    question = await _asked(asking)
    await eventually_async(lambda: editor.shown, what="the dialog")
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    assert answer.cancelled()
    await eventually_async(lambda: editor.closed == ["May I?"], what="the dialog is closed")
    assert asking.open_questions == ()
    assert asking.answer(question.id, Consent.YES) is None


async def test_a_dialog_that_fails_is_no_answer_and_the_terminal_still_has_the_question(editor: AskingEditor) -> None:
    asking = CompanionQuestions(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", ""))
    question = await _asked(asking)
    editor.answers.put_nowait(EditorError("the editor is busy"))
    await eventually_async(lambda: editor.messages, what="where to answer")
    assert f"isthmus ide answer {question.id}" in editor.messages[0]
    asking.answer(question.id, Consent.YES)
    assert await asyncio.wait_for(answer, 30) is True


async def test_an_editor_without_dialogs_says_where_the_answer_is_given(workspace: Path) -> None:
    editor = HeadlessEditor((str(workspace),))
    asking = CompanionQuestions(editor)
    answer = asyncio.create_task(asking.ask("An agent", "May I?", ""))
    question = await _asked(asking)
    await eventually_async(lambda: editor.messages, what="where to answer")
    assert editor.messages == (f"May I?: isthmus ide answer {question.id} yes|no",)
    asking.answer(question.id, Consent.NO)
    assert await asyncio.wait_for(answer, 30) is False


async def test_no_answer_in_time_is_a_no(editor: AskingEditor) -> None:
    times = iter([0.0])
    asking = CompanionQuestions(editor, lambda: next(times, 1_000_000.0))  # asked at 0, and then it is too late already
    assert await asyncio.wait_for(asking.ask("An agent", "May I?", ""), 30) is False
    assert asking.open_questions == ()


async def test_the_end_of_the_companion_is_a_no_to_every_question(editor: AskingEditor) -> None:
    asking = CompanionQuestions(editor)
    answers = [asyncio.create_task(asking.ask("An agent", "May I?", "")) for _ in range(2)]
    await eventually_async(lambda: len(editor.shown) == 2, what="two dialogs")
    asking.stop()
    assert await asyncio.wait_for(asyncio.gather(*answers), 30) == [False, False]
    await eventually_async(lambda: len(editor.closed) == 2, what="both dialogs are closed")
    assert await asking.ask("An agent", "May I?", "") is False
    assert len(editor.shown) == 2


async def test_a_title_is_one_line_whatever_a_client_calls_itself(editor: AskingEditor) -> None:
    asking = CompanionQuestions(editor)
    answer = asyncio.create_task(asking.ask("x", "Evil\n\x1b[2J agent wants\tthis", "a\nb"))
    question = await _asked(asking)
    assert (question.title, question.text) == ("Evil agent wants this", "a\nb")
    asking.answer(question.id, Consent.NO)
    await asyncio.wait_for(answer, 30)


async def test_the_dialog_shows_what_is_hidden_in_the_text_and_reorders_nothing(editor: AskingEditor) -> None:
    asking = CompanionQuestions(editor)
    code = "run()  # \u202e)(esrever \x1b[8m\r\nnext\t\U000e0041"
    answer = asyncio.create_task(asking.ask("x", "\u202eAn agent", code))
    question = await _asked(asking)
    await eventually_async(lambda: editor.shown, what="the dialog")
    assert editor.shown == [("\\u202eAn agent", "run()  # \\u202e)(esrever \u241b[8m\nnext\t\\U000e0041")]
    assert question.text == code
    asking.answer(question.id, Consent.NO)
    await asyncio.wait_for(answer, 30)


async def test_a_yes_for_the_session_is_for_one_agent_and_one_notebook_until_it_leaves(
    editor: AskingEditor,
) -> None:
    asking = CompanionQuestions(editor)

    async def is_allowed(client_id: str, about: str, consent: Consent | None = None) -> bool:
        """Ask; without a consent no question may be shown."""
        title = f"Run code in {about.rpartition('/')[2]}?"
        answer = asyncio.create_task(asking.ask("An agent", title, "print(1)", client_id, about))
        if consent is not None:
            asking.answer((await _asked(asking)).id, consent)
        return await asyncio.wait_for(answer, 30)

    assert await is_allowed("one", "/w/a.ipynb", Consent.SESSION)
    assert asking.allowed == ("Run code in a.ipynb?",)
    assert await is_allowed("one", "/w/a.ipynb")
    assert not await is_allowed("one", "/w/b.ipynb", Consent.NO)
    assert not await is_allowed("one", "/other/a.ipynb", Consent.NO)
    assert not await is_allowed("two", "/w/a.ipynb", Consent.NO)
    assert await is_allowed("two", "/w/a.ipynb", Consent.YES)
    assert not await is_allowed("two", "/w/a.ipynb", Consent.NO)
    asking.forget("one")
    assert asking.allowed == ()
    assert not await is_allowed("one", "/w/a.ipynb", Consent.NO)


async def test_an_editor_can_take_a_yes_for_the_session(workspace: Path) -> None:
    class Page(AskingEditor):
        async def consent(self, title: str, text: str) -> Consent:
            return Consent.SESSION

    asking = CompanionQuestions(Page(workspace))
    assert await asyncio.wait_for(asking.ask("x", "May I?", "", "one", "/w/a.ipynb"), 30)
    assert asking.allowed == ("May I?",)
