"""The command ``isthmus bridge``: real agents in an editor with an extension for other agents, and refusals."""

import asyncio
import signal
from pathlib import Path

import pytest

from isthmus.cli.bridge import AnnouncedIde, choose
from isthmus.errors import IsthmusError
from support.claude_cli import CallError, claude_cli, locks
from support.claude_ide import ClaudeServer, claude_server, diagnostic
from support.claude_servers import MonetServer, NeovimServer, SublimeServer
from support.companion import attached_agent
from support.editing import make_file
from support.gemini_cli import gemini_cli
from support.isthmus_program import bridge_program, companion_program, isthmus, user
from support.scripted_wire import Call
from support.vscode_companion import vscode_companion
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"


@pytest.mark.extended
async def test_gemini_cli_works_in_an_editor_that_has_only_a_claude_extension(workspace: Path) -> None:
    path = make_file(workspace, "a.py", BEFORE)
    async with claude_server(NeovimServer, workspace) as ide:
        ide.open.append(path)
        async with bridge_program(workspace):
            await ide.select(path, "two", (1, 0), (1, 3))
            async with gemini_cli(workspace) as cli:
                assert f"Connected to {ide.ide_name}" in await cli.status()
                await cli.sees_files(1)
                seen = (await cli.ask("first"))["activeFile"]
                assert (seen["path"], seen["cursor"]["line"], seen["selectedText"]) == (path, 2, "two")

                await cli.propose(Call("write_file", {"file_path": path, "content": PROPOSED}), "Written, I see.")
                assert (await ide.view()).contents == PROPOSED
                await ide.accept("changed there\n")
                await cli.shows("Written, I see.")
                assert Path(path).read_text(encoding="utf-8") == "changed there\n"
                assert "changed there" in cli.tool_response()["output"]

                # An answer in the terminal closes the view.
                await cli.propose(Call("write_file", {"file_path": path, "content": PROPOSED}), "Allowed, I see.")
                await ide.view()
                await cli.choose("Allow once")
                await cli.shows("Allowed, I see.")
                await eventually_async(lambda: not ide.views, what="the view is closed")
                assert Path(path).read_text(encoding="utf-8") == PROPOSED

                await cli.propose(Call("write_file", {"file_path": path, "content": "worse\n"}))
                await ide.reject()
                await cli.shows("Rejected")
                assert Path(path).read_text(encoding="utf-8") == PROPOSED


@pytest.mark.parametrize("kind", [SublimeServer, MonetServer], ids=lambda kind: kind.server_name)
async def test_agents_of_gemini_clis_protocol_work_in_editors_with_other_extensions(
    kind: type[ClaudeServer], workspace: Path
) -> None:
    path = make_file(workspace, "a.py", BEFORE)
    async with claude_server(kind, workspace) as ide:
        ide.open.append(path)
        async with bridge_program(workspace) as bridge:
            await ide.select(path, "two", (1, 0), (1, 3))
            async with attached_agent(bridge.url, bridge.discovered["authToken"]) as agent:
                await agent.sees(path=path, selectedText="two")
                await agent.open_diff(Path(path), "worse\n")
                await ide.reject()
                assert await agent.notified("ide/diffRejected") == {"filePath": path}
                await agent.open_diff(Path(path), PROPOSED)
                await ide.accept("changed there\n")
                accepted = await agent.notified("ide/diffAccepted")
                assert accepted == {"filePath": path, "content": "changed there\n"}


@pytest.mark.requirement("CLD-085")
async def test_claude_code_works_in_an_editor_that_has_only_a_gemini_companion(workspace: Path) -> None:
    path = Path(make_file(workspace, "a.py", BEFORE))
    async with vscode_companion() as ide:
        ide.discovery(workspace, ideInfo={"name": "vscode", "displayName": "VS Code"})
        async with bridge_program(workspace), claude_cli(workspace) as cli:
            assert cli.lock.name == "VS Code"
            cursor = {"line": 2, "character": 4}
            await ide.look_at(
                {"path": str(path), "timestamp": 5, "isActive": True, "cursor": cursor, "selectedText": "two"}
            )
            selection = await cli.selects(filePath=str(path), text="two")
            assert selection["fileUrl"] == path.as_uri()

            editing = asyncio.create_task(cli.edit(path, PROPOSED))
            await eventually_async(lambda: ide.opened == [(str(path), PROPOSED)], what="the view in the IDE")
            await ide.accept(str(path), "changed there\n")
            edit = await asyncio.wait_for(editing, 60)
            assert (edit.outcome, edit.is_modified) == ("written", True)
            assert path.read_bytes() == b"changed there\n"
            for tool, arguments in (("saveDocument", {"filePath": str(path)}), ("executeCode", {"code": "1"})):
                with pytest.raises(CallError, match="not available in VS Code: "):
                    await cli.call(tool, arguments)


async def test_diagnostics_of_the_ide_reach_agents_that_ask_for_them(workspace: Path) -> None:
    make_file(workspace, "a.py", BEFORE)
    async with claude_server(NeovimServer, workspace) as ide, bridge_program(workspace):
        path = str(workspace / "a.py")
        ide.open.append(path)
        ide.diagnostics[path] = [diagnostic(1, "undefined name")]
        found = (await user("diagnostics", folder=workspace))["diagnostics"]
        assert [(each["file"], each["line"], each["message"]) for each in found] == [(path, 2, "undefined name")]


async def test_a_companion_that_speaks_both_protocols_needs_no_bridge(workspace: Path) -> None:
    with companion_program(workspace):
        refused = await asyncio.to_thread(isthmus, "bridge", folder=workspace)
        assert refused.returncode == 1
        assert "speaks every protocol already; nothing to bridge" in refused.stderr


async def test_a_script_may_be_agent_and_user_where_that_was_allowed(workspace: Path) -> None:
    path = make_file(workspace, "a.py", BEFORE)
    async with (
        claude_server(NeovimServer, workspace) as ide,
        bridge_program(workspace, "--allow-agent-accept") as bridge,
        attached_agent(bridge.url, bridge.discovered["authToken"]) as agent,
    ):
        await agent.open_diff(Path(path), PROPOSED)
        await ide.view()
        await user("accept", "a.py", folder=workspace)
        assert await agent.notified("ide/diffAccepted") == {"filePath": path, "content": PROPOSED}
        await eventually_async(lambda: not ide.views, what="the view is closed")


async def test_a_second_bridge_names_the_first(workspace: Path) -> None:
    with companion_program(workspace, "--protocol", "claude"):
        async with bridge_program(workspace) as bridge:
            refused = await asyncio.to_thread(isthmus, "bridge", folder=workspace)
            assert refused.returncode == 1
            assert f"has a bridge already, on port {bridge.ready['port']}; start the agent" in refused.stderr


async def test_without_an_ide_it_is_said_what_to_do(workspace: Path) -> None:
    refused = await asyncio.to_thread(isthmus, "bridge", folder=workspace)
    assert refused.returncode == 1
    assert "no IDE has this folder open" in refused.stderr
    assert "isthmus doctor" in refused.stderr


async def test_the_bridge_ends_and_cleans_up_when_it_is_stopped(workspace: Path) -> None:
    async with claude_server(NeovimServer, workspace) as ide:
        async with bridge_program(workspace) as bridge:
            assert bridge.discovery_file.exists()
            assert len(locks()) == 1  # the IDE's own
            assert await asyncio.to_thread(bridge.end) == 0
            assert not bridge.discovery_file.exists()
        assert len(locks()) == 1
        await eventually_async(lambda: not ide.clients, what="the IDE's connection is closed")


async def test_a_bridge_that_was_killed_starts_again_and_is_the_same_to_its_agents(workspace: Path) -> None:
    async with claude_server(NeovimServer, workspace):
        async with bridge_program(workspace) as bridge:
            before = bridge.discovered
            await asyncio.to_thread(bridge.end, signal.SIGKILL)
        assert bridge.discovery_file.exists()
        async with bridge_program(workspace) as again:
            assert again.discovered == before


async def test_the_bridge_ends_with_the_process_of_its_ide(workspace: Path) -> None:
    with companion_program(workspace, "--protocol", "gemini") as ide:
        async with bridge_program(workspace) as bridge:
            await asyncio.to_thread(ide.end, signal.SIGKILL)
            assert await asyncio.to_thread(bridge.process.wait, 40) == 0  # and not after the minute that a lost IDE has
            assert not bridge.discovery_file.exists()


GEMINI, CLAUDE = AnnouncedIde("gemini", "VS Code", 1), AnnouncedIde("claude", "Neovim", 2)


@pytest.mark.parametrize(
    ("announced", "kind", "chosen"),
    [
        ((CLAUDE,), None, CLAUDE),
        ((GEMINI,), None, GEMINI),
        ((CLAUDE, GEMINI), "gemini", GEMINI),
        ((CLAUDE, GEMINI), "claude", CLAUDE),
    ],
)
def test_the_only_kind_is_taken_and_of_two_the_one_that_is_named(
    announced: tuple[AnnouncedIde, ...], kind: str | None, chosen: AnnouncedIde
) -> None:
    assert choose(announced, kind) == chosen


@pytest.mark.parametrize(
    ("announced", "kind", "reason"),
    [
        ((), None, "no IDE has this folder open"),
        ((CLAUDE, GEMINI), None, "--from claude: Neovim; --from gemini: VS Code"),
        ((CLAUDE,), "gemini", "no IDE here speaks Gemini CLI's protocol; found: Neovim"),
        ((CLAUDE, AnnouncedIde("gemini", "Neovim", 2)), None, "speaks every protocol already"),
        ((CLAUDE, AnnouncedIde("gemini", "Neovim", 2)), "claude", "speaks every protocol already"),
    ],
)
def test_what_cannot_be_bridged_is_refused_with_the_reason(
    announced: tuple[AnnouncedIde, ...], kind: str | None, reason: str
) -> None:
    with pytest.raises(IsthmusError, match=reason):
        choose(announced, kind)
