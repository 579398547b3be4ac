"""Discovery files of the companion protocol: their paths, their changes with the workspace, and options for them."""

import json
import signal
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.files.locations import runtime_directory
from isthmus.ide.editor import Capability, EditorError
from isthmus.ide.options import CompanionOptions
from support.companion import attached_agent, running_companion, running_host
from support.editor_deadlines import PATIENT_LIMITS
from support.isolation import IsolatedFolders
from support.isthmus_program import companion_program, isthmus, would_choose
from support.neovim import running_neovim
from support.stdio_editor import stdio_driver
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_VIGILANT = replace(PATIENT_LIMITS, housekeeping_seconds=0.05)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def qwen_lock(isolated_folders: IsolatedFolders, port: int) -> Path:
    return isolated_folders.home / ".qwen" / "ide" / f"{port}.lock"


def test_a_lock_for_qwen_code_equals_the_discovery_file_and_goes_with_the_companion(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    with companion_program(workspace) as companion:
        lock = qwen_lock(isolated_folders, companion.ready["port"])
        content = read(lock)
        assert content["ppid"] == companion.process.pid
        assert {name: content[name] for name in companion.discovered} == companion.discovered
        assert stat.S_IMODE(lock.stat().st_mode) == 0o600
        assert companion.end() == 0
    assert not lock.exists()
    assert not companion.discovery_file.exists()


def test_a_lock_is_written_where_qwen_home_says(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QWEN_HOME", str(tmp_path / "qwen"))
    with companion_program(workspace) as companion:
        assert (tmp_path / "qwen" / "ide" / f"{companion.ready['port']}.lock").exists()


def test_a_home_folder_that_takes_no_lock_keeps_nobody_from_the_companion(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    (isolated_folders.home / ".qwen").write_text("a file where the folder should be", encoding="utf-8")
    with companion_program(workspace) as companion:
        assert companion.discovered["port"] == companion.ready["port"]


async def test_files_that_somebody_removes_or_spoils_come_back(
    workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    async with running_companion(workspace, limits=_VIGILANT) as companion:
        files = [Path(file) for server in companion.ready.servers for file in server.discovery_files]
        files += runtime_directory().glob("companion-*.json")
        assert len(files) == 4
        for path in files:
            content = read(path)
            path.unlink()
            await eventually_async(path.exists, what=f"{path} is back")
            assert read(path) == content
        path = qwen_lock(isolated_folders, companion.ready.port)
        content = read(path)
        path.write_text("", encoding="utf-8")
        await eventually_async(lambda: path.read_text(encoding="utf-8"), what=f"{path} is whole again")
        assert read(path) == content


def test_an_unwritable_home_folder_keeps_no_agent_of_another_protocol_away(
    workspace: Path, isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(isolated_folders.home / "file"))
    (isolated_folders.home / "file").write_text("not a folder", encoding="utf-8")
    with companion_program(workspace) as companion:
        assert companion.discovered["port"] == companion.ready["port"]
        assert would_choose("Isthmus", workspace) == companion.ready["port"]
        assert companion.end() == 0
        assert companion.process.stderr is not None
        assert "claude: agents find this editor only in its own terminals" in companion.process.stderr.read()


def test_a_companion_that_nobody_could_find_does_not_start(
    workspace: Path, isolated_folders: IsolatedFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(isolated_folders.home / "file"))
    (isolated_folders.home / "file").write_text("not a folder", encoding="utf-8")
    done = isthmus("companion", "--protocol", "claude", folder=workspace)
    assert done.returncode == 1
    assert "the companion cannot start" in done.stderr


def test_what_a_killed_companion_left_is_removed_by_the_next_one(
    workspace: Path, tmp_path: Path, isolated_folders: IsolatedFolders
) -> None:
    with companion_program(workspace) as companion:
        left = (companion.discovery_file, qwen_lock(isolated_folders, companion.ready["port"]))
        companion.end(signal.SIGKILL)
    assert all(path.exists() for path in left)
    with companion_program(tmp_path):
        assert not any(path.exists() for path in left)


@pytest.mark.requirement("GEM-017")
def test_several_folders_are_joined_by_the_separator_of_paths(
    workspace: Path, tmp_path: Path, isolated_folders: IsolatedFolders
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with companion_program(workspace, "--workspace", str(workspace), "--workspace", str(other)) as companion:
        assert companion.discovered["workspacePath"] == f"{workspace}:{other}"
        assert read(qwen_lock(isolated_folders, companion.ready["port"]))["workspacePath"] == f"{workspace}:{other}"


@pytest.mark.requirement("GEM-018")
async def test_the_files_follow_the_editor_to_another_folder(
    workspace: Path, tmp_path: Path, isolated_folders: IsolatedFolders
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with running_neovim(workspace) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            gemini, qwen = companion.discovery_file, qwen_lock(isolated_folders, companion.ready["port"])
            (claude,) = companion.ready["servers"]["claude"]["discovery_files"]

            def folders() -> list[str]:
                (of_claude,) = read(Path(claude))["workspaceFolders"]
                return [read(gemini)["workspacePath"], read(qwen)["workspacePath"], of_claude]

            assert folders() == [str(workspace)] * 3
            await neovim.type(f":cd {other}<CR>")
            await eventually_async(lambda: folders() == [str(other)] * 3, what="all files name the new folder")


@pytest.mark.requirement("GEM-042")
@pytest.mark.parametrize(
    ("option", "expected"), [((), None), (("--trusted",), True), (("--untrusted",), False)], ids=["unsaid", "yes", "no"]
)
async def test_the_trust_of_the_workspace_is_told_when_it_is_known(
    workspace: Path, option: tuple[str, ...], expected: bool | None
) -> None:
    with companion_program(workspace, *option) as companion:
        async with attached_agent(companion.url, companion.discovered["authToken"]) as agent:
            context = await agent.notified("ide/contextUpdate")
            assert context["workspaceState"].get("isTrusted") is expected


@pytest.mark.requirement("GEM-042")
async def test_a_workspace_that_the_user_comes_to_trust_is_told_again(workspace: Path) -> None:
    async with (
        stdio_driver(workspace, isTrusted=False) as user,
        running_host(user.editor, CompanionOptions()) as (_, ready, _),
    ):
        token = read(Path(ready.discovery_file))["authToken"]
        async with attached_agent(f"http://127.0.0.1:{ready.port}/mcp", token) as agent:
            context = await agent.notified("ide/contextUpdate")
            assert context["workspaceState"]["isTrusted"] is False
            await user.plugin.do("tell", method="editor/didChangeTrust", params={"isTrusted": True})
            context = await agent.notified("ide/contextUpdate", 2)
            assert context["workspaceState"]["isTrusted"] is True


async def test_without_diffs_no_diff_tool_is_listed_and_a_call_says_why(workspace: Path) -> None:
    with companion_program(workspace, "--no-diff") as companion:
        async with attached_agent(companion.url, companion.discovered["authToken"]) as agent:
            assert (await agent.client.list_tools()).tools == []
            for result in (
                await agent.open_diff(workspace / "a.py", "new\n"),
                await agent.close_diff(workspace / "a.py", suppressNotification=True),
            ):
                assert result.is_error
            assert "--no-diff" in str((await agent.open_diff(workspace / "a.py", "new\n")).content)


@pytest.mark.requirement("GEM-028")
async def test_a_terminal_inside_the_editor_names_the_companion_for_every_protocol(
    workspace: Path, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    async with running_neovim(workspace) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:

            async def is_set() -> bool:
                return bool(await neovim.lua("return vim.env.GEMINI_CLI_IDE_SERVER_PORT"))

            await eventually_async(is_set, what="the variables in Neovim")
            await neovim.command(f"terminal printenv > {seen}")
            expected = {
                f"GEMINI_CLI_IDE_SERVER_PORT={companion.ready['port']}",
                f"GEMINI_CLI_IDE_WORKSPACE_PATH={workspace}",
                f"QWEN_CODE_IDE_SERVER_PORT={companion.ready['port']}",
                f"CLAUDE_CODE_SSE_PORT={companion.ready['servers']['claude']['port']}",
            }

            await eventually_async(
                lambda: seen.exists() and expected <= set(seen.read_text(encoding="utf-8").splitlines()),
                what=f"{expected} in the terminal",
            )


async def test_an_editor_that_was_busy_at_first_is_given_the_variables_later(workspace: Path) -> None:
    given: list[Mapping[str, str | None]] = []

    class Busy(HeadlessEditor):
        @property
        def unavailable(self) -> dict[Capability, str]:
            return {}

        async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
            given.append(variables)
            if len(given) == 1:
                raise EditorError("it is busy")

    async with running_host(Busy((str(workspace),)), CompanionOptions(), _VIGILANT) as (_, ready, _):
        await eventually_async(lambda: len(given) == 2, what="the variables are given again")
        assert given[1]["GEMINI_CLI_IDE_SERVER_PORT"] == str(ready.port)
