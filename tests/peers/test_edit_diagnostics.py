"""Diagnostics of an editor after edits, requested over a real socket: which are new, and when the model gets them."""

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from isthmus.agent.part import PartTurn
from isthmus.ide.clients.ide_client import IdeClient
from isthmus.parts.editor.diagnostics import EditDiagnosticsOfIde
from isthmus.parts.editor.directory import EditorDirectory, EditorTimeouts
from isthmus.tools.port.tool_set import ToolScope
from support.claude_ide import ClaudeServer, claude_server, diagnostic
from support.editing import make_file
from support.vscode_companion import vscode_companion

pytestmark = pytest.mark.anyio

PATIENT = EditorTimeouts(ask_seconds=30.0, look_seconds=0.05, settle_seconds=0.01, pause_seconds=0.01)


@pytest.fixture
async def server(workspace: Path) -> AsyncGenerator[ClaudeServer]:
    async with claude_server(ClaudeServer, workspace) as running:
        yield running


@pytest.fixture
async def client_of() -> AsyncGenerator[Callable[[ToolScope], Awaitable[IdeClient | None]]]:
    directory = EditorDirectory(os.environ)

    async def find(scope: ToolScope) -> IdeClient | None:
        return await directory.client(scope.workspace)

    yield find
    await directory.aclose()


@pytest.fixture
def watch(client_of: Callable[[ToolScope], Awaitable[IdeClient | None]]) -> EditDiagnosticsOfIde:
    return EditDiagnosticsOfIde(client_of, PATIENT)


async def test_without_an_edit_the_editor_is_not_asked(
    server: ClaudeServer, watch: EditDiagnosticsOfIde, workspace: Path
) -> None:
    assert await watch.before_model(PartTurn(ToolScope(workspace, "c", "t"), "c")) is None
    assert server.called("getDiagnostics") == []


async def test_what_two_edits_in_a_row_broke_is_told_at_once_and_once(
    server: ClaudeServer, watch: EditDiagnosticsOfIde, workspace: Path
) -> None:
    first, second = Path(make_file(workspace, "a.py")), Path(make_file(workspace, "b.py"))
    turn = PartTurn(ToolScope(workspace, "c", "t"), "c")
    await watch.before_edit(turn, first)
    server.diagnostics = {str(first): [diagnostic(0, "one")]}
    await watch.before_edit(turn, second)
    server.diagnostics[str(second)] = [diagnostic(0, "two")]
    problems = await watch.before_model(turn)
    assert problems is not None
    assert "one" in problems
    assert "two" in problems
    assert await watch.before_model(turn) is None


async def test_later_findings_of_the_editor_are_told_also_after_another_edit(
    server: ClaudeServer, watch: EditDiagnosticsOfIde, workspace: Path
) -> None:
    path = Path(make_file(workspace, "a.py"))
    turn = PartTurn(ToolScope(workspace, "c", "t"), "c")
    await watch.before_edit(turn, path)
    assert await watch.before_model(turn) is None
    server.diagnostics = {str(path): [diagnostic(0, "alpha")]}
    assert "alpha" in (await watch.before_model(turn) or "")
    server.diagnostics = {str(path): [diagnostic(0, "alpha"), diagnostic(1, "beta")]}
    await watch.before_edit(turn, path)
    problems = await watch.before_model(turn) or ""
    assert "beta" in problems
    assert "alpha" not in problems, "that one was told"
    watch.task_ended("t")
    server.diagnostics = {}
    assert await watch.before_model(turn) is None


async def test_what_was_mended_is_no_news(server: ClaudeServer, watch: EditDiagnosticsOfIde, workspace: Path) -> None:
    path = Path(make_file(workspace, "a.py"))
    turn = PartTurn(ToolScope(workspace, "c", "t"), "c")
    server.diagnostics = {str(path): [diagnostic(0, "old"), diagnostic(1, "old too")]}
    await watch.before_edit(turn, path)
    server.diagnostics = {str(path): [diagnostic(5, "old")]}
    assert await watch.before_model(turn) is None


async def test_an_editor_that_tells_no_diagnostics_is_not_waited_for(
    client_of: Callable[[ToolScope], Awaitable[IdeClient | None]], workspace: Path
) -> None:
    watch = EditDiagnosticsOfIde(client_of, EditorTimeouts(look_seconds=3600))
    async with vscode_companion() as window:
        window.discovery(workspace)
        turn = PartTurn(ToolScope(workspace, "c", "t"), "c")
        assert await client_of(turn.scope) is not None
        await watch.before_edit(turn, workspace / "a.py")
        assert await watch.before_model(turn) is None


async def test_without_an_editor_nothing_is_told(watch: EditDiagnosticsOfIde, workspace: Path) -> None:
    turn = PartTurn(ToolScope(workspace, "c", "t"), "c")
    await watch.before_edit(turn, workspace / "a.py")
    assert await watch.before_model(turn) is None
