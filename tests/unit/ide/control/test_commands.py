"""The attached agents in the answers to `isthmus ide`."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.encoding.codec import JsonObject
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import COMMANDS, ControlCommandError
from isthmus.ide.editor import EditorError
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.reviews.review import Accepted
from support.companion_recorder import Recorder
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def elsewhere(tmp_path: Path) -> Generator["subprocess.Popen[bytes]"]:
    """Start a process in another folder, without a terminal."""
    program = [sys.executable, "-ISc", "import sys; sys.stdin.read()"]
    with subprocess.Popen(program, cwd=tmp_path, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process


async def test_two_agents_of_a_kind_are_told_apart_by_process_folder_and_terminal(
    workspace: Path, tmp_path: Path, elsewhere: "subprocess.Popen[bytes]"
) -> None:
    companion = Companion(HeadlessEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))
    first, second = Recorder("one", pid=os.getpid()), Recorder("two", pid=elsewhere.pid)
    companion.attach(first)
    await companion.open_diff(first, str(workspace / "a.py"), "new\n")
    (alone,) = (await COMMANDS["diffs"](companion, {}))["diffs"]
    assert "agent_pid" not in alone
    companion.attach(second)
    await companion.open_diff(second, str(workspace / "b.py"), "new\n")
    told = await COMMANDS["status"](companion, {})
    assert [diff["agent_pid"] for diff in told["diffs"]] == [os.getpid(), elsewhere.pid]
    assert told["agents"][1] == {
        "id": "two",
        "title": "A client",
        "connected": True,
        "pid": elsewhere.pid,
        "folder": str(tmp_path.resolve()),
        "terminal": None,
    }
    assert told["agents"][0]["folder"] == str(Path.cwd())


@pytest.mark.parametrize("pid", [2**31 - 1, 10**30])
async def test_a_process_that_is_not_to_be_seen_is_told_without_its_place(workspace: Path, pid: int) -> None:
    companion = Companion(HeadlessEditor((str(workspace),)))
    companion.attach(Recorder("one", pid=pid))
    (agent,) = (await COMMANDS["status"](companion, {}))["agents"]
    assert (agent["pid"], agent["folder"], agent["terminal"]) == (pid, None, None)


async def test_a_diff_is_shown_with_what_was_typed_into_it(workspace: Path, tmp_path: Path) -> None:
    editor = HeadlessEditor((str(workspace),))
    companion, client = Companion(editor, kept=KeptTexts(tmp_path / "kept")), Recorder()
    running = asyncio.create_task(companion.run())
    companion.attach(client)
    review = await companion.open_diff(client, str(workspace / "a.py"), "new\n")

    async def shown() -> JsonObject:
        return (await COMMANDS["diffs"](companion, {}))["diffs"][0]

    assert "typed_content" not in await shown()
    editor.edit_diff(review.id, "typed\n")

    async def is_typed() -> bool:
        found = await shown()
        return (found["new_content"], found.get("typed_content")) == ("new\n", "typed\n")

    await eventually_async(is_typed, what="what was typed")
    editor.edit_diff(review.id, "new\n")

    async def is_the_proposal() -> bool:
        return "typed_content" not in await shown()

    await eventually_async(is_the_proposal, what="the proposal as it was")
    editor.quit()
    await running


async def test_hunks_of_a_proposal_that_is_edited_at_that_moment_are_not_accepted(
    workspace: Path, tmp_path: Path
) -> None:
    editor = HeadlessEditor((str(workspace),))
    companion, client = Companion(editor, kept=KeptTexts(tmp_path / "kept")), Recorder()
    running = asyncio.create_task(companion.run())
    companion.attach(client)
    path = workspace / "a.py"
    path.write_text("a\nb\nc\n", encoding="utf-8")
    review = await companion.open_diff(client, str(path), "A\nb\nC\n")
    await COMMANDS["diffs"](companion, {})
    editor.edit_diff(review.id, "A\nb\nC and more\n")  # its event has not arrived yet
    chosen: JsonObject = {"path": str(path), "hunks": [1]}
    with pytest.raises(EditorError, match="was edited after its hunks were listed"):
        await COMMANDS["accept"](companion, chosen)
    with pytest.raises(ControlCommandError, match="has changed since its hunks were listed"):
        await COMMANDS["accept"](companion, chosen)
    (shown,) = (await COMMANDS["diffs"](companion, {}))["diffs"]
    assert shown["typed_content"] == "A\nb\nC and more\n"
    await COMMANDS["accept"](companion, {**chosen, "hunks": [2]})
    assert client.decisions[-1].state == Accepted("a\nb\nC and more\n")
    editor.quit()
    await running
