"""The real Qwen Code in IDE mode, with ``isthmus companion`` as its IDE."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from support.coding_cli import SECONDS
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, companion_program, user, would_choose
from support.neovim import running_neovim, view_is_closed
from support.qwen_cli import SETTINGS, QwenCode, qwen_code
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"


@pytest.fixture
def files(workspace: Path) -> tuple[Path, Path]:
    paths = workspace / "a.py", workspace / "b.py"
    for path in paths:
        path.write_text(BEFORE, encoding="utf-8")
    return paths


@pytest.mark.extended
async def test_qwen_code_finds_the_companion_and_its_edits_are_answered_across_a_restart(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    a, _ = files
    (workspace / "c.py").touch()
    with companion_program(workspace, "--open", "a.py:2:3") as companion:
        async with qwen_code(workspace) as cli:
            await cli.sees_file("a.py")
            assert "Connected to Isthmus (headless)" in await cli.status()
            await _selections_reach_the_model(cli, workspace, files)
            await _edits_are_accepted_changed_and_rejected(cli, workspace, files)
            assert await asyncio.to_thread(companion.end, signal.SIGTERM) == 0
            with companion_program(workspace, "--open", "a.py", "--open", "c.py") as again:
                assert again.ready["port"] == companion.ready["port"]
                await cli.sees_file("c.py")
                await cli.rewrite(a, "again\n", "Accepted again, I see.")
                await user("diffs", "--wait", "30", folder=workspace)
                await user("accept", "a.py", "--content", "-", folder=workspace, text="reviewed again\n")
                await cli.shows("Accepted again, I see.")
                assert a.read_text(encoding="utf-8") == "reviewed again\n"


async def _selections_reach_the_model(cli: QwenCode, workspace: Path, files: tuple[Path, Path]) -> None:
    a, b = files
    assert await cli.ask("first") == f"Active file:\n  Path: {a}\n  Cursor: line 2, character 3"
    (agent,) = (await user("status", folder=workspace))["agents"]
    assert agent["title"] == "Qwen Code"
    await user("select", "b.py:1:2-2:3", folder=workspace)
    await cli.sees_file("b.py")
    assert (await cli.ask("second")).splitlines() == [
        "Files opened:",
        f"  - {b}",
        "",
        "Active file changed:",
        f"  Path: {b}",
        "  Cursor: line 2, character 3",
        "  Selected text:",
        "```",
        "ne",
        "tw",
        "```",
    ]


async def _edits_are_accepted_changed_and_rejected(cli: QwenCode, workspace: Path, files: tuple[Path, Path]) -> None:
    a, b = files
    await cli.rewrite(a, PROPOSED, "Accepted, I see.")
    (shown,) = (await user("diffs", "--wait", "30", folder=workspace))["diffs"]
    assert (shown["file"], shown["new_content"], shown["agent"]) == (str(a), PROPOSED, "Qwen Code")
    await user("accept", "a.py", folder=workspace)
    await cli.shows("Accepted, I see.")
    assert a.read_text(encoding="utf-8") == PROPOSED

    await cli.rewrite(b, PROPOSED, "Changed, I see.")
    await user("diffs", "--wait", "30", folder=workspace)
    await user("accept", "b.py", "--content", "-", folder=workspace, text="reviewed\n")
    await cli.shows("Changed, I see.")
    assert b.read_text(encoding="utf-8") == "reviewed\n"
    assert "User modified the `content` to be: reviewed\n" in cli.tool_response()

    await cli.rewrite(a, "worse\n")
    await user("diffs", "--wait", "30", folder=workspace)
    await user("reject", "a.py", folder=workspace)
    await cli.is_idle()
    assert a.read_text(encoding="utf-8") == PROPOSED
    assert (await user("diffs", folder=workspace))["diffs"] == []


@pytest.mark.extended
async def test_an_answer_in_qwen_code_closes_neovims_view_and_what_was_typed_is_kept(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    # Unlike Gemini CLI it writes its own proposal after an answer in the terminal.
    a, _ = files
    async with running_neovim(workspace, str(a)) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address):
            async with qwen_code(workspace) as cli:
                await cli.sees_file("a.py")
                await cli.rewrite(a, PROPOSED, "Allowed, I see.")

                async def shown() -> bool:
                    return await neovim.tabs() == 2 and await neovim.lines() == PROPOSED.splitlines()

                await eventually_async(shown, SECONDS, what="the proposal in a tab page of Neovim")
                await neovim.type("Gotyped, not written")
                await cli.choose("Yes, allow once")
                await cli.shows("Allowed, I see.")
                assert a.read_text(encoding="utf-8") == PROPOSED
                await view_is_closed(neovim)
                (kept,) = (await user("status", folder=workspace))["kept"]
                assert Path(kept).read_text(encoding="utf-8") == PROPOSED + "typed, not written\n"


@pytest.mark.extended
async def test_qwen_code_is_started_together_with_a_companion_that_ends_with_it(
    workspace: Path, files: tuple[Path, Path], isolated_folders: IsolatedFolders
) -> None:
    a, _ = files
    fresh = {key: values for key, values in SETTINGS.items() if key != "ide"}  # /ide enable was not used
    async with qwen_code(workspace, *ISTHMUS, "companion", "exec", "--", settings=fresh) as cli:
        await user("open", "a.py:3", folder=workspace)
        await cli.sees_file("a.py")
        (lock,) = (isolated_folders.home / ".qwen" / "ide").iterdir()
        await cli.rewrite(a, PROPOSED, "Allowed, I see.")
        await user("diffs", "--wait", "30", folder=workspace)
        await cli.choose("Yes, allow once")
        await cli.shows("Allowed, I see.")
        assert a.read_text(encoding="utf-8") == PROPOSED
        await cli.type("/quit")
        await eventually_async(lambda: cli.terminal.process.poll() is not None, SECONDS, what="the CLI has ended")
        await eventually_async(lambda: not lock.exists(), SECONDS, what="the companion has ended")


@pytest.mark.extended
async def test_of_the_locks_qwen_code_takes_its_terminals_else_the_newest_that_is_alive(
    workspace: Path, files: tuple[Path, Path], isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = files
    (workspace / "sub").mkdir()
    older, newer = (companion_program(workspace, "--open", file.name) for file in files)
    with older as first, newer as second, companion_program(workspace) as killed:
        locks = isolated_folders.home / ".qwen" / "ide"
        dead = locks / f"{killed.ready['port']}.lock"
        killed.end(signal.SIGKILL)
        content = json.loads(dead.read_text(encoding="utf-8"))
        silent = locks / "1.lock"
        silent.write_text(json.dumps(content | {"port": 1, "ppid": os.getpid()}), encoding="utf-8")
        assert would_choose("Qwen Code", workspace) == second.ready["port"]
        async with qwen_code(workspace / "sub") as cli:
            await cli.sees_file("b.py")
            assert str(b) in await cli.ask("first")
        assert not dead.exists()
        assert silent.exists()
        port = str(first.ready["port"])
        monkeypatch.setenv("QWEN_CODE_IDE_SERVER_PORT", port)
        assert would_choose("Qwen Code", workspace) == first.ready["port"]
        async with qwen_code(workspace, environment={"QWEN_CODE_IDE_SERVER_PORT": port}) as cli:
            await cli.sees_file("a.py")
            assert str(a) in await cli.ask("first")
