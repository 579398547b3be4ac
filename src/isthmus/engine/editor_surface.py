"""Shows proposed edits in the user's editor and takes the user's answer from it.

The editor is one more surface beside the client that asked: the first answer wins, and a question that is answered
elsewhere is closed here. A question that was open when the process ended is shown again after a restart. Editors are
known only as :class:`EditorPeer`, whatever their protocol.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, TypeAlias, assert_never

from isthmus.client import AgentClient, PromptMessage, TaskError
from isthmus.development_tool import FileDiff, ModifiedFileDetails, ToolCall, ToolCallConfirmation
from isthmus.engine.followers.open_questions import OpenQuestions, QuestionClosed, QuestionOpened
from isthmus.errors import IsthmusError
from isthmus.questions import ACCEPTING_OPTIONS, REFUSING_OPTIONS, offered_option
from isthmus.record import record

CLOSED_SECONDS = 5.0
"""Maximum wait in seconds, after an answer from an editor came too late, to learn who answered first."""
log = logging.getLogger(__name__)


@record
class RejectedWith:
    """A rejection with the user's words to the agent; never empty."""

    reason: str


class EditorPeer(Protocol):
    """An editor that can show a diff."""

    @property
    def name(self) -> str:
        """The name by which the user knows the editor."""
        ...

    @property
    def is_there(self) -> bool:
        """Whether the editor can show a diff now."""
        ...

    async def review(self, path: Path, new_content: str) -> "str | RejectedWith | None":
        """Show the change, wait for the user and return the accepted content, or None for a rejection without words.

        Cancelling closes the view. Raises :class:`IsthmusError` when the editor cannot show it or is gone.
        """
        ...

    def answered_elsewhere(self, path: Path, by: str) -> None:
        """Have the editor's user told who answered the question of a review, which is open or was decided too late."""
        ...


FindEditor: TypeAlias = Callable[[QuestionOpened], Awaitable[EditorPeer | None]]
"""Returns the editor for a question: the one its session names, or one that has the workspace open, or None."""
OnShown: TypeAlias = Callable[[str, str], None]
"""Called with a tool call's id and the editor's name when the editor is about to show the call's question."""
AgentOf: TypeAlias = Callable[[str], AgentClient]
"""Returns the agent as the user of this name sees it."""


class EditorSurface:
    """Reviews of the file edits among ``questions``; keep :meth:`run` running as long as the agent."""

    def __init__(
        self, agent_of: AgentOf, questions: OpenQuestions, find_editor: FindEditor, on_shown: OnShown | None = None
    ) -> None:
        self._agent_of = agent_of
        self._questions = questions
        self._find_editor = find_editor
        self._on_shown = on_shown
        self._reviews: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._shown: dict[tuple[str, str], tuple[EditorPeer, Path]] = {}
        self._answering: dict[tuple[str, str], asyncio.Future[str]] = {}
        """Questions whose answers are being sent; each future gets the name of who answered."""

    async def run(self) -> None:
        """Follow the questions until cancelled; then close the views."""
        try:
            async with contextlib.aclosing(self._questions.changes()) as changes:
                async for change in changes:
                    match change:
                        case QuestionOpened():
                            self._open(change)
                        case QuestionClosed(task_id, tool_call_id, answered_by):
                            self._close((task_id, tool_call_id), answered_by)
                        case _:
                            assert_never(change)
        finally:
            reviews = list(self._reviews.values())
            for review in reviews:
                review.cancel()
            await asyncio.gather(*reviews, return_exceptions=True)

    def _open(self, question: QuestionOpened) -> None:
        asked = question.tool_call.confirmation_request
        if asked is None or asked.file_edit_details is None:
            return
        key = (question.task_id, question.tool_call.tool_call_id)
        review = asyncio.create_task(self._review(question, asked.file_edit_details))
        self._reviews[key] = review
        review.add_done_callback(
            lambda ended: self._reviews.pop(key, None) if self._reviews.get(key) is ended else None
        )

    def _close(self, key: tuple[str, str], answered_by: str) -> None:
        if (answering := self._answering.get(key)) is not None:
            if not answering.done():  # not cancelled: its own answer closes the question, or one that came before
                answering.set_result(answered_by)
        elif (review := self._reviews.pop(key, None)) is not None:
            if answered_by and (shown := self._shown.get(key)) is not None:
                editor, path = shown
                editor.answered_elsewhere(path, answered_by)
            review.cancel()

    async def _review(self, question: QuestionOpened, edit: FileDiff) -> None:
        call_id = question.tool_call.tool_call_id
        key, path = (question.task_id, call_id), Path(edit.file_path)
        try:
            editor = await self._find_editor(question)
            if editor is None:
                return
            if self._on_shown is not None and editor.is_there:
                self._on_shown(call_id, editor.name)
            self._shown[key] = editor, path
            content = await editor.review(path, edit.new_content)
        except IsthmusError as error:
            log.warning("%s is not reviewed in the editor: %s", edit.file_path, error)
            return
        finally:
            self._shown.pop(key, None)
        agent = self._agent_of(question.user)
        sending: Awaitable[object]
        if isinstance(content, RejectedWith):
            # In place of an answer: the call is rejected, and the agent goes on with the user's words.
            text = f"I rejected the call of {question.tool_call.tool_name}. {content.reason}"
            sending = agent.prompt(PromptMessage(text, task_id=question.task_id))
        else:
            answer = _answer(question.tool_call, edit, content)
            sending = agent.answer(question.task_id, [answer], answered_by=editor.name)
        closed = self._answering[key] = asyncio.get_running_loop().create_future()
        try:
            await sending
        except TaskError as error:
            log.info("the answer from %s came too late: %s", editor.name, error)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSED_SECONDS):
                    if by := await closed:
                        editor.answered_elsewhere(path, by)
        finally:
            del self._answering[key]


def _answer(call: ToolCall, edit: FileDiff, content: str | None) -> ToolCallConfirmation:
    """Return the answer for the content that the user accepted; None for a rejection."""
    call_id = call.tool_call_id
    if content is None:
        return ToolCallConfirmation(call_id, offered_option(call, REFUSING_OPTIONS, "reject_once"))
    modified = None if content == edit.new_content else ModifiedFileDetails(content)
    return ToolCallConfirmation(call_id, offered_option(call, ACCEPTING_OPTIONS, "allow_once"), modified)
