"""Data that agents of a companion program get with each option of the user, and variables of the editor's terminals."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from support.claude_cli import CallError, claude_cli
from support.companion import BareAgent
from support.isthmus_program import CompanionProgram, companion_program, isthmus
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _first_context(companion: CompanionProgram) -> AsyncGenerator[dict[str, Any]]:
    headers = {"authorization": f"Bearer {companion.discovered['authToken']}"}
    base = f"http://127.0.0.1:{companion.ready['port']}"
    async with httpx2.AsyncClient(base_url=base, headers=headers, timeout=60, trust_env=False) as http:
        agent = BareAgent(http)
        await agent.initialize()
        async with agent.stream() as stream:
            yield (await stream.until("ide/contextUpdate"))[1]["params"]["workspaceState"]


async def _ide(workspace: Path, *arguments: str) -> "tuple[int, str, str]":
    done = await asyncio.to_thread(isthmus, "ide", *arguments, folder=workspace)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("one\ntwo\n", encoding="utf-8")
    (workspace / ".env").write_text("SECRET=1\n", encoding="utf-8")
    (workspace / ".aiexclude").write_text("/private/\n", encoding="utf-8")
    (workspace / "private").mkdir()
    (workspace / "private" / "b.py").write_text("secret\n", encoding="utf-8")
    return path


async def test_agents_of_both_protocols_never_hear_of_hidden_files(workspace: Path, file: Path) -> None:
    opened = ("--open", "a.py", "--open", "private/b.py", "--open", ".env")
    with companion_program(workspace, *opened) as companion:
        await _ide(workspace, "select", ".env:1")
        async with _first_context(companion) as state, claude_cli(workspace) as cli:
            assert [entry["path"] for entry in state["openFiles"]] == [str(file)]
            assert "SECRET" not in json.dumps(state)
            tabs = json.loads(await cli.text("getOpenEditors"))["tabs"]
            assert [tab["fileName"] for tab in tabs] == [str(file)]
            for tool in ("getCurrentSelection", "getLatestSelection"):
                assert "SECRET" not in await cli.text(tool)
            code, _, told = await _ide(workspace, "mention", "private/b.py")
            assert code == 1
            assert "hidden" in told
            await _ide(workspace, "mention", "a.py:2")
            assert (await cli.mentioned())["filePath"] == str(file)
            assert all("SECRET" not in json.dumps(params) for params in cli.told("selection_changed"))


async def test_without_context_no_agent_hears_of_a_file(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--no-context", "--trusted", "--open", "a.py:1") as companion:
        await _ide(workspace, "select", "a.py:1")
        async with _first_context(companion) as state, claude_cli(workspace) as cli:
            assert state == {"openFiles": [], "isTrusted": True}
            assert json.loads(await cli.text("getOpenEditors"))["tabs"] == []
            assert json.loads(await cli.text("getCurrentSelection"))["success"] is False
            assert json.loads(await cli.text("getDiagnostics")) == []


async def test_without_selections_agents_hear_of_files_and_of_no_text(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--no-selection", "--untrusted", "--open", "a.py") as companion:
        await _ide(workspace, "select", "a.py:1")
        async with _first_context(companion) as state, claude_cli(workspace) as cli:
            (entry,) = state["openFiles"]
            assert (entry["path"], state["isTrusted"]) == (str(file), False)
            assert "selectedText" not in entry
            assert json.loads(await cli.text("getCurrentSelection"))["text"] == ""
            assert json.loads(await cli.text("getLatestSelection"))["success"] is False


async def test_without_diffs_an_edit_is_left_to_the_terminal_of_the_agent(workspace: Path, file: Path) -> None:
    with companion_program(workspace, "--no-diff"):
        async with claude_cli(workspace) as cli:
            arguments = {"old_file_path": str(file), "new_file_path": str(file), "new_file_contents": "new\n"}
            with pytest.raises(CallError, match="terminal"):
                await cli.call("openDiff", arguments | {"tab_name": "tab"})
            code, listed, _ = await _ide(workspace, "diffs")
            assert (code, listed) == (0, "no diff waits for an answer\n")


async def _environment(neovim: RunningNeovim, folder: Path) -> dict[str, str]:
    """Return the environment of a new terminal inside Neovim."""
    found = folder / "environment"
    found.unlink(missing_ok=True)
    await neovim.lua(
        "vim.cmd('tabnew'); vim.fn.termopen({'sh', '-c', 'env -0 > part && mv part environment'}, { cwd = ... })",
        str(folder),
    )
    await eventually_async(found.exists, what="the terminal ran")
    return dict(line.split("=", 1) for line in found.read_text(encoding="utf-8").split("\0") if "=" in line)


async def test_a_terminal_in_neovim_leads_all_agents_here_and_none_does_afterwards(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    async with running_neovim(workspace) as neovim:
        before = await _environment(neovim, tmp_path)
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            async with claude_cli(workspace) as cli:
                port = str(companion.ready["port"])

                async def is_set() -> bool:
                    return await neovim.lua("return vim.env.GEMINI_CLI_IDE_SERVER_PORT") == port

                await eventually_async(is_set, what="the variables")
                inside = await _environment(neovim, tmp_path)
                assert inside["GEMINI_CLI_IDE_WORKSPACE_PATH"] == str(workspace)
                assert inside["GEMINI_CLI_IDE_AUTH_TOKEN"] == companion.discovered["authToken"]
                assert inside["QWEN_CODE_IDE_SERVER_PORT"] == port
                assert inside["ENABLE_IDE_INTEGRATION"] == "true"
                assert inside["CLAUDE_CODE_SSE_PORT"] == str(cli.lock.port)
                for name in ("NO_PROXY", "no_proxy"):
                    assert {"127.0.0.1", "localhost"} <= set(inside[name].split(","))
                assert "example.org" in inside["NO_PROXY"].split(",")
            assert await asyncio.to_thread(companion.end) == 0

        async def is_unset() -> bool:
            return not await is_set()

        await eventually_async(is_unset, what="the variables are gone")  # a busy Neovim takes some time for it
        after = await _environment(neovim, tmp_path)
        changed = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        assert changed <= {"NVIM_LOG_FILE", "PWD", "OLDPWD", "_"}


async def test_terminals_in_neovim_do_not_lead_to_a_companion_that_was_killed(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")
    async with running_neovim(workspace) as neovim:

        async def variables() -> list[str]:
            await neovim.lua("vim.cmd('doautocmd CursorMoved')")  # Neovim notices the end at its next notification
            return await neovim.lua("return { vim.env.CLAUDE_CODE_SSE_PORT or 'none', vim.env.NO_PROXY }")

        async def is_led() -> bool:
            return (await variables())[0] != "none"

        async def is_as_before() -> bool:
            return await variables() == ["none", "example.org"]

        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            await eventually_async(is_led, what="the variables")
            await asyncio.to_thread(companion.end, signal.SIGKILL)
            await eventually_async(is_as_before, what="the variables are gone")
