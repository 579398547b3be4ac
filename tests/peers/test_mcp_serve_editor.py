"""The editor tools of ``isthmus mcp serve``: the official Python client, a real Neovim, and a companion without one."""

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import ClientSession

from isthmus.editors.neovim.editor import attach
from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from isthmus.ide.options import CompanionOptions
from support.companion import RunningCompanion, running_companion, running_host
from support.editing import make_file
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import running_neovim
from support.served_over_mcp import served
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

TASK_TOOLS = ["run_task", "start_task", "get_task", "cancel_task"]
EDITOR_TOOLS = ["get_editor_context", "get_diagnostics", "open_file", "review_edit"]
LINT = """
vim.diagnostic.set(vim.api.nvim_create_namespace("linter"), 0, {
  { lnum = 1, col = 0, end_lnum = 1, end_col = 3, message = "two\\27[2J is not defined", source = "linter" },
})
"""


async def call(session: ClientSession, name: str, progress: Any = None, **arguments: Any) -> tuple[list[str], bool]:
    """Return the texts of a result, and whether it is an error."""
    result = await session.call_tool(name, arguments, read_timeout_seconds=60, progress_callback=progress)
    assert isinstance(result, types.CallToolResult)
    return [block.text for block in result.content if isinstance(block, types.TextContent)], bool(result.is_error)


async def test_neovim_is_seen_and_steered_and_its_user_decides(workspace: Path) -> None:
    first, second = make_file(workspace, "a.py"), make_file(workspace, "b.py")
    told: list[str | None] = []

    async def note(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(message)

    async with (
        running_neovim(workspace, first) as neovim,
        running_host(await attach(neovim.address, PATIENT_NEOVIM), CompanionOptions()),
        served(workspace, "demo", "--ide") as session,
    ):

        async def view(is_open: bool) -> None:
            async def is_so() -> bool:
                name = await neovim.lua("return vim.api.nvim_buf_get_name(0)")
                return str(name).endswith(" (proposed)") is is_open and (await neovim.tabs() == 2) is is_open

            await eventually_async(is_so, what="the diff has the focus" if is_open else "the diff is closed")

        assert [tool.name for tool in (await session.list_tools()).tools] == [*TASK_TOOLS, *EDITOR_TOOLS]
        await neovim.lua(LINT)
        texts, _ = await call(session, "get_diagnostics", file_path="a.py")
        assert "a.py:\n  ✘ [Line 2:1] two␛[2J is not defined (linter)" in texts[0]
        assert (await call(session, "open_file", file_path="b.py", line=3)) == (["Neovim shows b.py, line 3."], False)
        assert await neovim.lua("return {vim.api.nvim_buf_get_name(0), vim.fn.line('.')}") == [second, 3]

        async def with_selection() -> str | None:
            (text,), _ = await call(session, "get_editor_context")
            return text if '"selectedText": "three"' in text else None

        context = await eventually_async(with_selection, what="the selection") or ""
        assert f'"path": "{second}",\n  "cursor": {{\n   "line": 3,' in context
        assert f'"otherOpenFiles": [\n  "{first}"\n ]' in context
        assert "1-based" in context

        await neovim.type("<Esc>")

        review = asyncio.create_task(call(session, "review_edit", note, file_path="b.py", new_content="proposed\n"))
        await view(is_open=True)
        await neovim.set_lines("by the user")
        await neovim.enter("write")
        texts, is_error = await review
        assert (texts[0].startswith("Accepted in Neovim: b.py. The user changed the text first"), is_error) == (
            True,
            False,
        )
        assert "The file was not written" in texts[0]
        assert texts[1] == "by the user\n"
        assert told == ["Waiting for the user's decision in Neovim"]
        assert Path(second).read_text("utf-8") == "one\ntwo\nthree\n"
        Path(second).write_text(texts[1], "utf-8")
        await view(is_open=False)

        review = asyncio.create_task(call(session, "review_edit", file_path="new/c.py", new_content="proposed\n"))
        await view(is_open=True)
        await neovim.enter("quit")
        assert (await review)[0] == ["Rejected: the user does not want this edit of new/c.py. Do not write it."]

        await view(is_open=False)
        review = asyncio.create_task(call(session, "review_edit", file_path="b.py", new_content="proposed\n"))
        await view(is_open=True)
        review.cancel()
        await asyncio.gather(review, return_exceptions=True)
        await view(is_open=False)


async def test_wrong_arguments_and_no_editor_are_errors_that_say_what_to_do(workspace: Path, tmp_path: Path) -> None:
    make_file(tmp_path, "secret.py")
    make_file(workspace, "a.py")
    (workspace / "link.py").symlink_to(tmp_path / "secret.py")
    (workspace / "folder").symlink_to(tmp_path)
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("open_file", {}, "file_path: expected a non-empty string, received nothing"),
        ("open_file", {"file_path": ["a.py"]}, "file_path: expected a non-empty string, received list"),
        ("open_file", {"file_path": "a.py", "line": 0}, "line: expected a whole number of 1 or more"),
        ("open_file", {"file_path": "a.py", "line": True}, "line: expected a whole number"),
        ("open_file", {"file_path": "a.py", "line": 10**30}, "line: expected a whole number"),
        ("open_file", {"file_path": "../secret.py"}, "outside the workspace"),
        ("open_file", {"file_path": "/etc/passwd"}, "outside the workspace"),
        ("open_file", {"file_path": "link.py"}, "outside the workspace"),
        ("open_file", {"file_path": "none.py"}, "No such file"),
        ("open_file", {"file_path": "."}, "it is a directory"),
        ("open_file", {"file_path": "a\0.py"}, "not a usable path"),
        ("open_file", {"file_path": "x" * 100_000}, "not a usable path"),
        ("review_edit", {"file_path": "a.py"}, "new_content: expected a string"),
        ("review_edit", {"file_path": "a.py", "new_content": 3}, "new_content: expected a string"),
        ("review_edit", {"file_path": "a.py", "new_content": "x" * 400_001}, "of at most 400000 characters"),
        ("review_edit", {"file_path": "a.py", "new_content": "a\0"}, "received a NUL character"),
        ("review_edit", {"file_path": "a.py", "new_content": "one\ntwo\nthree\n"}, "nothing to review"),
        ("review_edit", {"file_path": "folder/secret.py", "new_content": "x"}, "outside the workspace"),
        ("review_edit", {"file_path": "b\u202eyp.py", "new_content": "x"}, "characters that do not show"),
        ("review_edit", {"file_path": ".git/hooks/pre-commit", "new_content": "x"}, "belongs to git"),
        ("review_edit", {"file_path": ".env", "new_content": "x"}, "hidden from agents"),
        ("review_edit", {"file_path": "a.py", "new_content": "x"}, "No editor is attached to this folder"),
        ("open_file", {"file_path": "a.py"}, "isthmus companion"),
        ("get_diagnostics", {}, "isthmus ide status"),
        ("get_editor_context", {}, "No editor is attached to this folder"),
    ]
    async with served(workspace, "demo", "--ide") as session:
        for name, arguments, expected in wrong:
            (text,), is_error = await call(session, name, **arguments)
            assert is_error, (name, arguments)
            assert expected in text, (name, arguments)
            assert len(text) <= 2000
        async with running_companion(workspace):

            async def is_found() -> bool:
                return not (await call(session, "get_editor_context"))[1]

            await eventually_async(is_found, what="the editor that came later")


async def test_hidden_files_stay_hidden_and_an_accepted_edit_is_for_the_client(workspace: Path) -> None:
    (workspace / ".geminiignore").write_text("*.key\n", "utf-8")
    shown, key, env = (make_file(workspace, name) for name in ("a.py", "a.key", ".env"))
    async with running_companion(workspace) as companion, served(workspace, "demo", "--ide") as session:
        for path in (shown, key, env):
            at = Range(Position(0, 0), Position(0, 3))
            await companion.editor.open_file(path, at)
            companion.editor.set_diagnostics(path, [Diagnostic(path, at, Severity.WARNING, f"found in {path}")])
        (context,), _ = await call(session, "get_editor_context")
        (problems,), _ = await call(session, "get_diagnostics")
        assert "a.py" in context
        assert "a.py:\n  ⚠ [Line 1:1] found in " in problems
        for text in (context, problems):
            assert "a.key" not in text
            assert ".env" not in text
        assert (await call(session, "get_diagnostics", file_path="a.key"))[1]

        first = asyncio.create_task(call(session, "review_edit", file_path="a.py", new_content="proposed\n"))
        review = await shown_review(companion)
        (again,), is_error = await call(session, "review_edit", file_path="a.py", new_content="other\n")
        assert (is_error, "a review of this file is open" in again) == (True, True)
        companion.editor.accept_diff(review)
        (text,), is_error = await first
        assert (is_error, "write exactly the accepted text" in text) == (False, True)
        assert Path(shown).read_text("utf-8") == "one\ntwo\nthree\n"


async def shown_review(companion: RunningCompanion) -> str:
    """Wait for a review in the editor, and return its id."""
    await eventually_async(lambda: bool(companion.editor.open_reviews), what="a review")
    return companion.editor.open_reviews[0].id
