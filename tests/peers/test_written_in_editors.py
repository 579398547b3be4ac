"""What agents wrote, beside a user who saves in Neovim or Emacs, and text there that is not saved yet."""

import time
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import attach
from isthmus.errors import IsthmusError
from isthmus.ide.written_changes.ledger import ChangeSelection
from isthmus.ide.written_changes.written_changes import WrittenChanges
from support.editing import make_file
from support.editor_deadlines import PATIENT_NEOVIM
from support.emacs import emacs_driver, lisp_string
from support.neovim import running_neovim
from support.stdio_editor import stdio_driver
from support.waiting import eventually_async
from support.written_changes import recording

pytestmark = pytest.mark.anyio

OLD = "one\ntwo\nthree\nfour\nfive\n"


async def _lines(written: WrittenChanges, path: str) -> list[tuple[str, str]]:
    if not (await written.listing())["files"]:
        return []
    hunks = (await written.file_diff(path, None))["hunks"]
    return [("".join(hunk["old_lines"]), "".join(hunk["new_lines"])) for hunk in hunks]


async def test_what_the_user_saves_in_neovim_is_theirs(workspace: Path) -> None:
    path = make_file(workspace, "a.txt", OLD)
    async with (
        running_neovim(workspace, path) as neovim,
        recording(await attach(neovim.address, PATIENT_NEOVIM), workspace) as written,
    ):
        make_file(workspace, "a.txt", OLD.replace("one", "ONE"))

        async def shown() -> bool:
            return (await neovim.lines())[0] == "ONE"

        await eventually_async(shown, what="Neovim has read the file again")

        async def is_saved() -> bool:  # Neovim reports it on a connection of its own
            return await _lines(written, path) == [("one\n", "ONE\n")]

        await neovim.command("5s/five/mine/", "write")
        await eventually_async(is_saved, what="the save is the user's")
        await neovim.command("3s/three/not saved/")
        with pytest.raises(IsthmusError, match="unsaved text in Neovim; save it there first"):
            await written.undo(ChangeSelection(path))
        await neovim.command("write")
        await eventually_async(is_saved, what="the second save is the user's")
        await written.undo(ChangeSelection(path))
        expected = OLD.replace("five", "mine").replace("three", "not saved")
        assert Path(path).read_text() == expected

        async def is_read() -> bool:
            return await neovim.lines() == expected.splitlines()

        await eventually_async(is_read, what="Neovim shows what was there before")
        assert (await written.listing())["files"][0]["written"] == 0


async def test_what_the_user_saves_in_emacs_is_theirs(workspace: Path) -> None:
    path = make_file(workspace, "a.txt", OLD)
    async with emacs_driver(workspace) as driver:
        await driver.open(Path(path))
        async with recording(driver.editor, workspace) as written:
            await driver.emacs.evaluate(
                f"(with-current-buffer (find-buffer-visiting {lisp_string(path)}) (goto-char (point-max))"
                ' (insert "mine\n") (save-buffer) t)'
            )

            await driver.editor.open_files()  # Emacs answers after it has reported the save.

            async def is_saved() -> bool:
                return Path(path).read_text() == OLD + "mine\n" and await _lines(written, path) == []

            await eventually_async(is_saved, what="the save is the user's")
            make_file(workspace, "a.txt", "ONE" + OLD[3:] + "mine\n")
            assert await _lines(written, path) == [("one\n", "ONE\n")]
            await written.undo(ChangeSelection(path))
            assert Path(path).read_text() == OLD + "mine\n"


async def test_a_plugin_asks_and_is_told(workspace: Path) -> None:
    path = make_file(workspace, "a.txt", OLD)
    async with stdio_driver(workspace) as driver, recording(driver.editor, workspace):
        plugin = driver.plugin
        make_file(workspace, "a.txt", OLD.replace("one", "ONE"))

        async def ask(name: str, command: object, **params: object) -> dict[str, Any]:
            await plugin.do("ask", method="companion/written", id=name, params={"command": command, "params": params})

            async def answered() -> list[dict[str, Any]]:
                return [message for message in await plugin.do("heard") if message.get("id") == name]

            answers: list[dict[str, Any]] = await eventually_async(answered, what="an answer")
            return answers[0]

        assert not await plugin.heard("companion/changesWritten")
        found = (await ask("first", "written_file", path=path))["result"]
        assert [hunk["new_lines"] for hunk in found["hunks"]] == [["ONE\n"]]
        await ask("second", "written_undo", hunks=[found["hunks"][0]["id"]])
        assert Path(path).read_text() == OLD
        assert (await plugin.hears("companion/changesWritten"))[-1]["params"] == {"files": 0, "turns": 0}
        again = (await ask("third", "written_undo", hunks=[found["hunks"][0]["id"]]))["error"]
        assert (again["code"], "has changed since it was listed" in again["message"]) == (-32803, True)
        assert (await ask("fourth", 5))["error"]["code"] == -32602
        make_file(workspace, "a.txt", OLD + "mine\n")
        await plugin.do("tell", method="editor/didSave", params={"uri": Path(path).as_uri()})

        async def is_theirs() -> bool:
            return (await ask(f"last {time.monotonic()}", "written"))["result"]["files"][0]["written"] == 0

        await eventually_async(is_theirs, what="the save is the user's")
