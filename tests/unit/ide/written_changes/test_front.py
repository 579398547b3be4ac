"""An editor that shows what agents wrote: it is told of changes, and asks by the commands of the control channel."""

import json
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.options import CompanionOptions
from isthmus.ide.written_changes.store import Store
from support.companion import attached_agent, running_host
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class _Front(HeadlessEditor):
    """An editor that records what it is told."""

    def __init__(self, folder: Path) -> None:
        super().__init__((str(folder),))
        self.told: list[tuple[int, int]] = []
        self.ask: Callable[[str, JsonObject], Coroutine[None, None, JsonObject]] | None = None

    def serve_changes(self, ask: Callable[[str, JsonObject], Coroutine[None, None, JsonObject]]) -> None:
        self.ask = ask

    def changes_written(self, files: int, turns: int) -> None:
        self.told.append((files, turns))


async def test_an_editor_is_told_and_decides(workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("one\n", encoding="utf-8")
    front = _Front(workspace)
    async with running_host(front, CompanionOptions()) as (host, ready, _):
        ask, companion = front.ask, host.companion
        assert ask is not None
        assert companion is not None
        token = json.loads(Path(ready.discovery_file).read_text(encoding="utf-8"))["authToken"]
        async with attached_agent(f"http://127.0.0.1:{ready.port}/mcp", token):

            async def follows() -> bool:
                return (await ask("written", {}))["following"]

            await eventually_async(follows, what="the companion follows the workspace")
            file.write_text("two\n", encoding="utf-8")
            await eventually_async(lambda: front.told[-1:] == [(1, 1)], what="the editor is told")
            found = await ask("written_file", {"path": str(file)})
            assert (found["old"], found["new"]) == ("one\n", "two\n")
            await front.open_file(str(file))
            front.edit(str(file), "typed\n")
            with pytest.raises(IsthmusError, match="has unsaved text in Isthmus"):
                await ask("written_undo", {"hunks": [found["hunks"][0]["id"]]})
            assert file.read_text(encoding="utf-8") == "two\n"
            await front.save(str(file))
            await eventually_async(lambda: companion.written.waiting() == (0, 0), what="the save is the user's")
            with pytest.raises(IsthmusError, match="You changed this hunk since; undo is off"):
                await ask("written_undo", {"hunks": [found["hunks"][0]["id"]]})
            with pytest.raises(IsthmusError, match="unknown command 'accept'"):
                await ask("accept", {})


async def test_a_store_that_fails_once_loses_nothing(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = workspace / "a.txt"
    file.write_text("one\n", encoding="utf-8")
    front = _Front(workspace)
    async with running_host(front, CompanionOptions()) as (_, ready, _):
        ask = front.ask
        assert ask is not None
        token = json.loads(Path(ready.discovery_file).read_text(encoding="utf-8"))["authToken"]
        async with attached_agent(f"http://127.0.0.1:{ready.port}/mcp", token):

            async def follows() -> bool:
                return (await ask("written", {}))["following"]

            await eventually_async(follows, what="the companion follows the workspace")

            def fail(*arguments: object) -> None:
                raise sqlite3.OperationalError("database or disk is full")

            with monkeypatch.context() as full:
                full.setattr(Store, "save_changed", fail)
                file.write_text("two\n", encoding="utf-8")
                listed = await ask("written", {})
                assert (listed["files"], "disk is full" in listed["problem"]) == ([], True)
            listed = await ask("written", {})
            assert ([entry["turns"] for entry in listed["files"]], listed["problem"]) == ([[1]], "")
            with monkeypatch.context() as full:
                full.setattr(Store, "forget_intended", fail)  # the file is written by then
                with pytest.raises(IsthmusError, match="it cannot be stored: database or disk is full"):
                    await ask("written_undo", {})
            assert file.read_text(encoding="utf-8") == "one\n"
            (entry,) = (await ask("written", {}))["files"]
            assert (entry["written"], entry["undone"]) == (0, 1)
            await ask("written_take_back", {})
            assert file.read_text(encoding="utf-8") == "two\n"


async def test_what_was_written_just_before_is_not_decided_unseen(workspace: Path) -> None:
    file, other = workspace / "a.txt", workspace / "b.txt"
    for path in (file, other):
        path.write_text("one\n", encoding="utf-8")
    front = _Front(workspace)
    async with running_host(front, CompanionOptions()) as (_, ready, _):
        ask = front.ask
        assert ask is not None
        token = json.loads(Path(ready.discovery_file).read_text(encoding="utf-8"))["authToken"]
        async with attached_agent(f"http://127.0.0.1:{ready.port}/mcp", token):

            async def follows() -> bool:
                return (await ask("written", {}))["following"]

            await eventually_async(follows, what="the companion follows the workspace")
            for command in ("written_undo", "written_keep"):
                file.write_text("two\n", encoding="utf-8")
                state = (await ask("written", {}))["state"]
                other.write_text(f"two {command}\n", encoding="utf-8")
                assert await ask(command, {"state": state}) == {"changed": True}
                assert other.read_text(encoding="utf-8") == f"two {command}\n"
                await ask(command, {})


async def test_nothing_is_decided_once_the_companion_has_ended(workspace: Path) -> None:
    front = _Front(workspace)
    async with running_host(front, CompanionOptions()):
        assert front.ask is not None
        await front.ask("written", {})
    assert (await front.ask("written", {}))["files"] == []
    for command in ("written_undo", "written_keep", "written_take_back"):
        with pytest.raises(IsthmusError):
            await front.ask(command, {})
