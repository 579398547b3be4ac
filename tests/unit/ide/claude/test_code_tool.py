"""The tool executeCode: code runs only after the user's yes, and all of its output is returned."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Consent,
    EditorError,
    ExecutionImage,
    ExecutionText,
)
from support.claude_tools import ToolUser, tool_user
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def editor(workspace: Path) -> HeadlessEditor:
    return HeadlessEditor((str(workspace),))


@pytest.fixture
async def user(editor: HeadlessEditor) -> AsyncGenerator[ToolUser]:
    async with tool_user(editor) as user:
        yield user


class NotebookEditor(HeadlessEditor):
    """A headless editor with a kernel whose answers the test sets."""

    def __init__(self, folder: Path) -> None:
        super().__init__((str(folder),))
        self.ran: list[str] = []
        self.notebooks: list[str | None] = []
        self.interrupted = False
        self.answer: CodeExecution | EditorError | None = CodeExecution()

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        return {Capability.CONFIRM: "it has no screen"}

    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        self.ran.append(code)
        self.notebooks.append(notebook)
        if self.answer is None:
            try:
                await asyncio.Event().wait()
            finally:
                self.interrupted = True
        if isinstance(self.answer, EditorError):
            raise self.answer
        assert self.answer is not None
        return self.answer


@pytest.fixture
def notebook_editor(workspace: Path) -> NotebookEditor:
    return NotebookEditor(workspace)


@pytest.fixture
async def notebook_user(notebook_editor: NotebookEditor) -> AsyncGenerator[ToolUser]:
    async with tool_user(notebook_editor) as user:
        yield user


async def _allow(user: ToolUser, yes: bool = True) -> None:
    assert user.companion.asking.answer((await user.question()).id, Consent.of(yes=yes)) is not None


async def test_code_runs_when_the_user_allows_it_and_its_outputs_come_in_order(
    notebook_user: ToolUser, notebook_editor: NotebookEditor, workspace: Path
) -> None:
    notebook = workspace / "analysis.ipynb"
    notebook.write_text("{}", encoding="utf-8")
    await notebook_editor.open_file(str(notebook))
    notebook_editor.answer = CodeExecution((ExecutionText("1\n"), ExecutionImage(b"\x89PNG", "image/png")))
    answer = notebook_user.start("executeCode", code="print(1)")
    question = await notebook_user.question()
    assert question.title == "agent wants to run code in analysis.ipynb"
    assert question.text == "print(1)"
    assert notebook_editor.ran == []
    await _allow(notebook_user)
    result = await answer
    assert not result.is_error
    assert [dict(block) for block in result.content] == [
        {"type": "text", "text": "1\n"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
    ]
    assert notebook_editor.ran == ["print(1)"]


async def test_code_runs_in_the_notebook_that_the_user_allowed_it_in(
    notebook_user: ToolUser, notebook_editor: NotebookEditor, workspace: Path
) -> None:
    for name in ("allowed.ipynb", "other.ipynb"):
        (workspace / name).write_text("{}", encoding="utf-8")
    await notebook_editor.open_file(str(workspace / "allowed.ipynb"))
    answer = notebook_user.start("executeCode", code="print(1)")
    assert (await notebook_user.question()).title == "agent wants to run code in allowed.ipynb"
    await notebook_editor.open_file(str(workspace / "other.ipynb"))
    await _allow(notebook_user)
    assert not (await answer).is_error
    assert notebook_editor.notebooks == [str(workspace / "allowed.ipynb")]


async def test_code_that_is_not_allowed_does_not_run(notebook_user: ToolUser, notebook_editor: NotebookEditor) -> None:
    answer = notebook_user.start("executeCode", code="print(1)")
    await _allow(notebook_user, yes=False)
    result = await answer
    assert result.is_error
    assert "did not allow" in result.content[0]["text"]
    assert notebook_editor.ran == []


async def test_the_user_is_not_asked_about_code_that_cannot_run(workspace: Path) -> None:
    class WithoutKernel(NotebookEditor):
        async def require_kernel(self) -> None:
            raise EditorError("no notebook is open; open one")

    async with tool_user(WithoutKernel(workspace)) as user:
        result = await user.call("executeCode", code="print(1)")
        assert result.is_error
        assert result.content[0]["text"] == "no notebook is open; open one"
        assert user.companion.asking.open_questions == ()


async def test_what_the_code_raises_and_what_the_kernel_lacks_are_error_results(
    notebook_user: ToolUser, notebook_editor: NotebookEditor
) -> None:
    for kernel_says in (
        CodeExecution((ExecutionText("ZeroDivisionError"),), is_error=True),
        EditorError("no notebook"),
    ):
        notebook_editor.answer = kernel_says
        answer = notebook_user.start("executeCode", code="1/0")
        await _allow(notebook_user)
        result = await answer
        assert result.is_error
        assert result.content[0]["text"] in ("ZeroDivisionError", "no notebook")


async def test_a_cancelled_call_interrupts_the_code_or_takes_the_question_back(
    notebook_user: ToolUser, notebook_editor: NotebookEditor
) -> None:
    answer = notebook_user.start("executeCode", code="while True: pass")
    await notebook_user.question()
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    await eventually_async(lambda: notebook_user.companion.asking.open_questions == (), what="no question")
    notebook_editor.answer = None
    answer = notebook_user.start("executeCode", code="while True: pass")
    await _allow(notebook_user)
    await eventually_async(lambda: notebook_editor.ran, what="the code runs")
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    await eventually_async(lambda: notebook_editor.interrupted, what="the interrupt")


async def test_an_editor_without_notebooks_is_not_asked_about(user: ToolUser) -> None:
    said = await user.error("executeCode", code="print(1)")
    assert said.startswith("not available in Isthmus (headless): ")
    assert user.companion.asking.open_questions == ()
