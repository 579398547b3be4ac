"""An editor's trust of a folder decides whether a project's MCP servers start there, at any time."""

import json
import os
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from isthmus.parts.editor.directory import EditorDirectory
from isthmus.programs.agent.building import trust_of
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, scripted, write_servers
from support.vscode_companion import VsCodeCompanion, vscode_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
async def editors() -> AsyncGenerator[EditorDirectory]:
    directory = EditorDirectory(os.environ)
    yield directory
    await directory.aclose()


async def tell(window: VsCodeCompanion, trusted: bool) -> None:
    await window.send("ide/contextUpdate", {"workspaceState": {"openFiles": [], "isTrusted": trusted}})


@pytest.mark.parametrize("by_file", [False, True])
async def test_the_editors_word_on_trust_counts_before_the_file_and_when_it_changes(
    tmp_path: Path, workspace: Path, editors: EditorDirectory, by_file: bool
) -> None:
    home = tmp_path / "user"
    (home / ".gemini").mkdir(parents=True)
    if by_file:
        rules = json.dumps({str(workspace): "TRUST_FOLDER"})
        (home / ".gemini" / "trustedFolders.json").write_text(rules, encoding="utf-8")
    write_servers(workspace, {"theirs": scripted("plain")})
    async with vscode_companion(as_json=True) as window:
        window.discovery(workspace, ideInfo={"name": "vscode", "displayName": "VS Code"})
        trusts = trust_of(editors, home)
        async with hosting(home, {}, trusts=trusts, meet_editor=editors.connect) as host:
            scope = ToolScope(workspace)

            async def has_tools(expected: bool) -> bool:
                return (list((await host.tools(scope)).tools) == ["ok"]) is expected

            async def has_said(trusted: bool) -> bool:
                await tell(window, trusted)  # an editor that is slow to connect gets it again
                return editors.trust(workspace) is trusted

            assert await has_tools(by_file), "the editor says nothing"
            for said in (True, False):
                await eventually_async(partial(has_said, said), 60)
                assert await has_tools(said)
            (status,) = await host.servers(scope)
            assert "trust it in your editor" in (status.problem or "")
