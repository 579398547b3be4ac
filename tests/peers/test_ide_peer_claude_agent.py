"""The whole agent with an editor that speaks the Claude protocol: reviews, context, diagnostics, and /ide."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from isthmus.events import TaskState
from isthmus.ide.claude.peer import ClaudePeer
from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from isthmus.parts.editor.directory import EditorDirectory
from support.claude_ide import ClaudeServer, claude_server, diagnostic
from support.claude_servers import MonetServer, NeovimServer, SublimeServer
from support.command_harness import CommandHarness, Ran
from support.companion import running_companion
from support.editing import make_file
from support.editor_harness import PATIENT_EDITOR, editor_harness
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

OpenHarness: TypeAlias = Callable[..., AbstractAsyncContextManager[CommandHarness]]


@pytest.fixture
def open_harness(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OpenHarness:
    """Return a function that starts a harness whose model sends these replies."""

    def opened(*replies: Reply, **options: Any) -> AbstractAsyncContextManager[CommandHarness]:
        return editor_harness(workspace, tmp_path / "data", list(replies), monkeypatch, **options)

    return opened


def edit(path: str, content: str) -> Reply:
    return Reply.of(Call("write_file", {"file_path": path, "content": content}))


def change(path: str, old: str, new: str) -> Reply:
    return Reply.of(Call("replace", {"file_path": path, "old_string": old, "new_string": new}))


async def ended(harness: CommandHarness, ran: Ran) -> Ran:
    """Return the task, once it has stopped working."""

    async def is_over() -> bool:
        return (await harness.engine.get(ran.task_id)).state is TaskState.COMPLETED

    await eventually_async(is_over, what="the task is completed")
    return await harness.replay(ran)


class Linting(SublimeServer):
    """A server with a diagnostic for each line that contains ``wrong``."""

    def tell_diagnostics(self, uri: str | None) -> dict[str, Any]:
        """Answer with diagnostics of the files on disk."""
        files = sorted(self.workspace.glob("*.py"))
        self.diagnostics = {
            str(file): [
                diagnostic(number, f"{line} is not defined", 4)
                for number, line in enumerate(file.read_text(encoding="utf-8").splitlines())
                if "wrong" in line
            ]
            for file in files
        }
        return super().tell_diagnostics(uri)


@pytest.mark.requirement("CLD-040", "CLD-043", "CLD-083")
@pytest.mark.parametrize("kind", [SublimeServer, NeovimServer, MonetServer])
async def test_an_edit_is_reviewed_and_changed_there_and_written_here(
    kind: type[ClaudeServer], workspace: Path, open_harness: OpenHarness
) -> None:
    path = make_file(workspace, "a.py", "one\n")
    async with (
        claude_server(kind, workspace) as server,
        open_harness(edit(path, "two\n"), Reply.of(Say("done"))) as harness,
    ):
        asked = await harness.prompt("change it")
        assert asked.state is TaskState.INPUT_REQUIRED
        view = await server.view()
        assert (view.path, view.contents) == (path, "two\n")
        await server.accept("two, by the user\n")
        await ended(harness, asked)
        assert Path(path).read_text(encoding="utf-8") == "two, by the user\n"
        assert "two, by the user" in harness.said()
        (shown,) = server.called("openDiff")
        await eventually_async(lambda: {"tab_name": shown["tab_name"]} in server.called("close_tab"))


@pytest.mark.parametrize("kind", [SublimeServer, NeovimServer, MonetServer])
async def test_an_answer_in_the_terminal_closes_the_view_there(
    kind: type[ClaudeServer], workspace: Path, open_harness: OpenHarness
) -> None:
    path = make_file(workspace, "a.py", "one\n")
    async with (
        claude_server(kind, workspace) as server,
        open_harness(edit(path, "two\n"), Reply.of(Say("done"))) as harness,
    ):
        asked = await harness.prompt("change it")
        await server.view()
        assert (await harness.answer(asked)).state is TaskState.COMPLETED
        await eventually_async(lambda: not server.views, what="the view is closed")
        assert Path(path).read_text(encoding="utf-8") == "two\n"


async def test_a_save_whose_contents_are_not_told_leaves_the_question_to_the_terminal(
    workspace: Path, open_harness: OpenHarness
) -> None:
    path = make_file(workspace, "a.py", "one\n")
    async with (
        claude_server(ClaudeServer, workspace) as server,
        open_harness(edit(path, "two\n"), Reply.of(Say("done"))) as harness,
    ):
        asked = await harness.prompt("change it")
        await server.accept("something else\n")
        await eventually_async(lambda: server.called("close_tab"))
        assert (await harness.engine.get(asked.task_id)).state is TaskState.INPUT_REQUIRED
        assert (await harness.answer(asked)).state is TaskState.COMPLETED
        assert Path(path).read_text(encoding="utf-8") == "two\n"


async def test_a_rejection_there_is_one_here(workspace: Path, open_harness: OpenHarness) -> None:
    path = make_file(workspace, "a.py", "one\n")
    async with (
        claude_server(NeovimServer, workspace) as server,
        open_harness(edit(path, "two\n"), Reply.of(Say("as you wish"))) as harness,
    ):
        asked = await harness.prompt("change it")
        await server.reject()
        await ended(harness, asked)
        assert Path(path).read_text(encoding="utf-8") == "one\n"
        assert "rejected" in harness.said()


@pytest.mark.requirement("CLD-017", "CLD-024", "CLD-052")
async def test_a_turn_has_what_is_open_selected_and_mentioned(workspace: Path, open_harness: OpenHarness) -> None:
    first, second = make_file(workspace, "first.py"), make_file(workspace, "second.py")
    async with (
        claude_server(NeovimServer, workspace) as server,
        open_harness(Reply.of(Say("seen")), Reply.of(Say("seen again")), timeouts=PATIENT_EDITOR) as harness,
    ):
        server.open, server.active = [first, second], first
        await harness.run("/ide status")
        await server.select(second, "two", (1, 0), (1, 3))
        await server.mention(first, 0, 1)
        told: dict[str, Any] = {}

        async def has_selection() -> bool:
            return "with selected text" in (await harness.run("/ide")).text

        await eventually_async(has_selection)
        ran = await harness.prompt("look")
        for part in harness.wire.model_requests[0].json["contents"][-1]["parts"]:
            if "```json" in part.get("text", ""):
                told = json.loads(part["text"].partition("```json\n")[2].partition("```")[0])
        assert told == {
            "mentionedFiles": [{"path": first, "lines": "1-2"}],
            "activeFile": {"path": second, "cursor": {"line": 2, "character": 4}, "selectedText": "two"},
            "otherOpenFiles": [first],
        }
        await harness.prompt("again", ran.context_id)
        assert harness.said().count("mentionedFiles") == 1


@pytest.mark.requirement("CLD-056", "CLD-057")
@pytest.mark.parametrize("approval_mode", ["default", "auto_edit"])
async def test_what_an_edit_broke_goes_to_the_model_and_what_was_wrong_before_does_not(
    workspace: Path, open_harness: OpenHarness, approval_mode: str
) -> None:
    path = make_file(workspace, "a.py", "wrong_before\n")
    replies = (change(path, "wrong_before\n", "\nwrong_before\nwrong_now\n"), Reply.of(Say("sorry")))
    async with (
        claude_server(Linting, workspace) as server,
        open_harness(*replies, approval_mode=approval_mode, timeouts=PATIENT_EDITOR) as harness,
    ):
        ran = await harness.prompt("change it")
        if approval_mode == "default":
            await server.accept()
        await ended(harness, ran)
        said = harness.last_user_text()
        assert said.startswith("<new-diagnostics>")
        assert "a.py:\n  ✘ [Line 3:5] wrong_now is not defined [E1] (pyflakes)</new-diagnostics>" in said
        assert "wrong_before is" not in said


async def test_an_edit_that_broke_nothing_is_not_commented(workspace: Path, open_harness: OpenHarness) -> None:
    path = make_file(workspace, "a.py", "wrong_before\n")
    replies = (change(path, "wrong_before\n", "wrong_before\nfine\n"), Reply.of(Say("done")))
    async with claude_server(Linting, workspace), open_harness(*replies, approval_mode="auto_edit") as harness:
        assert (await harness.prompt("change it")).state is TaskState.COMPLETED
        assert "new-diagnostics" not in harness.said()


async def test_an_editor_that_hangs_on_diagnostics_holds_nothing_up_for_long(
    workspace: Path, open_harness: OpenHarness
) -> None:
    path = make_file(workspace, "a.py", "one\n")
    replies = (change(path, "one", "two"), Reply.of(Say("done")))
    async with (
        claude_server(SublimeServer, workspace) as server,
        open_harness(*replies, approval_mode="auto_edit") as harness,
    ):
        server.hangs = {"getDiagnostics", "getOpenEditors"}
        assert (await harness.prompt("change it")).state is TaskState.COMPLETED


async def test_ide_names_the_editor_and_switches_it_off_and_on(workspace: Path, open_harness: OpenHarness) -> None:
    path = make_file(workspace, "a.py", "one\n")
    replies = (Reply.of(Say("one")), edit(path, "two\n"), Reply.of(Say("done")), Reply.of(Say("three")))
    async with (
        claude_server(NeovimServer, workspace) as server,
        open_harness(*replies, timeouts=PATIENT_EDITOR) as harness,
    ):
        server.open, server.active = [path], path
        status = (await harness.run("/ide status")).text
        assert f"Connected to Neovim (Claude Code IDE protocol, process {os.getpid()})" in status
        assert f"Folders: {workspace}\n" in status
        for word in ("reviews of edits", "diagnostics", "saving"):
            assert word in status
        assert "notebook" not in status
        ran = await harness.prompt("hello")
        assert "activeFile" in harness.said()
        assert "/ide enable" in (await harness.run("/ide disable", ran.context_id)).text
        assert "switched it off" in (await harness.run("/ide status", ran.context_id)).text
        await eventually_async(lambda: not server.clients, what="the editor is left")
        asked = await harness.prompt("change it", ran.context_id)
        assert asked.state is TaskState.INPUT_REQUIRED
        await harness.answer(asked)
        assert server.called("openDiff") == []
        assert harness.said().count("activeFile") == 1
        assert "Connected to Neovim" in (await harness.run("/ide enable", ran.context_id)).text
        await harness.prompt("hello again", ran.context_id)
        assert harness.said().count("activeFile") == 2


async def test_switching_the_editor_off_closes_what_it_shows_and_the_terminal_decides(
    workspace: Path, open_harness: OpenHarness
) -> None:
    path = make_file(workspace, "a.py", "one\n")
    replies = (edit(path, "two\n"), Reply.of(Say("done")))
    async with claude_server(NeovimServer, workspace) as server, open_harness(*replies) as harness:
        asked = await harness.prompt("change it")
        await server.view()
        await harness.run("/ide disable")
        await eventually_async(lambda: not server.views, what="the view is closed")
        assert (await harness.engine.get(asked.task_id)).state is TaskState.INPUT_REQUIRED
        assert (await harness.answer(asked)).state is TaskState.COMPLETED
        assert Path(path).read_text(encoding="utf-8") == "two\n"


async def test_without_an_editor_ide_says_what_to_do(
    workspace: Path, tmp_path: Path, open_harness: OpenHarness
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with claude_server(NeovimServer, elsewhere), open_harness() as harness:
        said = (await harness.run("/ide status")).text
        assert f"No editor with an agent extension has {workspace} open" in said
        assert "do not contain" in said
        assert "isthmus companion" in said


async def test_our_own_companion_is_connected_to_once_and_tells_trust_and_diagnostics(
    workspace: Path, open_harness: OpenHarness
) -> None:
    path = make_file(workspace, "a.py", "one\n")
    async with running_companion(workspace) as companion:
        await companion.editor.open_file(path)
        directory = EditorDirectory(os.environ)
        client = await directory.client(workspace)
        assert isinstance(client, ClaudePeer)
        assert path in (await directory.context(workspace) or "")
        assert directory.trust(workspace) is companion.editor.is_trusted
        at = Range(Position(0, 0), Position(0, 3))
        companion.editor.set_diagnostics(path, [Diagnostic(path, at, Severity.WARNING, "no colour", "lint", "L1")])
        (found,) = await client.diagnostics(path)
        assert (found.message, found.severity, found.code) == ("no colour", Severity.WARNING, "L1")
        await directory.aclose()
        async with open_harness(edit(path, "two\n"), Reply.of(Say("done"))) as harness:
            asked = await harness.prompt("change it")
            (review,) = await eventually_async(lambda: companion.editor.open_reviews, what="a diff view")
            companion.editor.edit_diff(review.id, "two, by the user\n")
            companion.editor.accept_diff(review.id)
            await ended(harness, asked)
            assert Path(path).read_text(encoding="utf-8") == "two, by the user\n"
            assert "no colour" not in harness.said()
            await eventually_async(partial(_has_no_reviews, companion.editor))


def _has_no_reviews(editor: Any) -> bool:
    return not editor.open_reviews
