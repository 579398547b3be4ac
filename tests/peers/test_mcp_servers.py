import asyncio
import json
import socket
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.development_tool import McpDetails, McpServerSettings
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import SOON_ENDED, everything_over, node_server, scripted, status_when, write_servers
from support.mcp_hosting import hosting_soon_ended as hosting
from support.programs import require
from support.tool_calls import result_of, running, said, success_of, tool_context

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("MCP-001", "MCP-013", "MCP-084", "MCP-121")
async def test_servers_of_node_and_python_run_together_and_their_tools_are_the_agents(
    home: Path, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("content of a")
    subprocess.run([str(require("git")), "init", "-q", str(workspace)], check=True)
    servers = {
        "everything": node_server("server-everything", "stdio"),
        "files": node_server("server-filesystem", str(workspace)),
        "memory": {**node_server("server-memory"), "env": {"MEMORY_FILE_PATH": str(workspace / "memory.json")}},
        "git": {"command": str(require("mcp-server-git")), "args": ["--repository", str(workspace)]},
        "time": {"command": str(require("mcp-server-time")), "args": ["--local-timezone", "UTC"]},
        "fetch": {"command": str(require("mcp-server-fetch"))},
    }
    async with hosting(home, servers, builtin_tools()) as host:
        scope = ToolScope(workspace)
        tools = (await host.tools(scope)).tools
        for name in servers:
            status = await status_when(host, scope, name, ServerState.CONNECTED)
            assert (status.problem, bool(status.tools)) == (None, True), status
        tools = (await host.tools(scope)).tools
        own = list(builtin_tools().tools)
        assert list(tools)[: len(own)] == own
        # Built-in tools with these names come first.
        assert {"files__read_file", "files__write_file", "files__list_directory"} <= set(tools)
        context = tool_context(workspace)
        assert said(await success_of(tools["echo"], context, message="hi")) == "Echo: hi"
        read = await success_of(tools["files__read_file"], context, path=str(workspace / "a.txt"))
        assert said(read) == "content of a"
        entity = {"name": "Ada", "entityType": "user", "observations": ["wrote programs"]}
        await success_of(tools["create_entities"], context, entities=[entity])
        assert "wrote programs" in said(await success_of(tools["read_graph"], context))
        assert "a.txt" in said(await success_of(tools["git_status"], context, repo_path=str(workspace)))
        assert "UTC" in said(await success_of(tools["get_current_time"], context, timezone="UTC"))


@pytest.mark.requirement("MCP-015", "MCP-022", "MCP-074")
async def test_streamable_http_works_by_http_url(home: Path, workspace: Path) -> None:
    with everything_over("streamableHttp") as port:
        servers = {"http": {"httpUrl": f"http://127.0.0.1:{port}/mcp", "timeout": 20_000}}
        async with hosting(home, servers) as host:
            tools = (await host.tools(ToolScope(workspace))).tools
            assert said(await success_of(tools["echo"], tool_context(workspace), message="hi")) == "Echo: hi"


@pytest.mark.requirement("MCP-014", "MCP-021")
async def test_sse_works_by_url_whether_the_type_says_so_or_it_is_found_out(home: Path, workspace: Path) -> None:
    with everything_over("sse") as port:
        url = f"http://127.0.0.1:{port}/sse"
        async with hosting(home, {"said": {"url": url, "type": "sse"}, "probed": {"url": url}}) as host:
            tools = (await host.tools(ToolScope(workspace))).tools
            assert said(await success_of(tools["echo"], tool_context(workspace), message="hi")) == "Echo: hi"
            again = await success_of(tools["probed__echo"], tool_context(workspace), message="you")
            assert said(again) == "Echo: you"


async def test_a_server_that_is_not_there_says_that_the_connection_was_refused(home: Path, workspace: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/mcp?token=secret"
        servers = {"a": {"httpUrl": url}, "b": {"url": url, "type": "sse"}}
        async with hosting(home, servers) as host:
            await host.tools(ToolScope(workspace))
            for name in servers:
                status = await status_when(host, ToolScope(workspace), name, ServerState.DISCONNECTED)
                assert (status.problem or "").startswith("Connection refused (http://127.0.0.1:")
                assert "secret" not in (status.problem or "")


@pytest.mark.requirement("MCP-140", "MCP-141", "MCP-144", "MCP-150")
async def test_an_image_is_kept_in_a_file_and_the_user_reads_that_text_and_image_came(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"everything": node_server("server-everything", "stdio")}) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        context = tool_context(workspace)
        result = await success_of(tools["get-tiny-image"], context)
        (file,) = context.output_folder.iterdir()
        assert file.suffix == ".png"
        assert file.read_bytes().startswith(b"\x89PNG")
        assert f"kept in {file}" in said(result)
        assert (result.output.text or "").splitlines()[0].startswith("text (2 lines) + image/png (")


@pytest.mark.requirement("MCP-146", "MCP-147")
async def test_embedded_resources_and_links_are_told_to_the_model(home: Path, workspace: Path) -> None:
    async with hosting(home, {"everything": node_server("server-everything", "stdio")}) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        links = await success_of(tools["get-resource-links"], tool_context(workspace), count=2)
        assert said(links).count("[link to the resource ") == 2
        embedded = await success_of(
            tools["get-resource-reference"], tool_context(workspace), resourceType="Text", resourceId=1
        )
        assert "[resource demo://resource/dynamic/text/1]" in said(embedded)


@pytest.mark.requirement("MCP-086")
async def test_tools_are_those_that_are_included_without_those_that_are_excluded(home: Path, workspace: Path) -> None:
    everything = node_server("server-everything", "stdio")
    servers = {
        "included": {**everything, "includeTools": ["echo", "get-sum"]},
        "excluded": {**everything, "excludeTools": ["echo"]},
        "both": {**everything, "includeTools": ["echo", "get-sum"], "excludeTools": ["echo"]},
    }
    async with hosting(home, servers) as host:
        scope = ToolScope(workspace)
        await host.tools(scope)
        offered: dict[str, set[str]] = {}
        for name in servers:
            status = await status_when(host, scope, name, ServerState.CONNECTED)
            offered[name] = {tool.name.removeprefix(f"{name}__") for tool in status.tools}
    assert offered["included"] == {"echo", "get-sum"}
    assert offered["both"] == {"get-sum"}
    assert "echo" not in offered["excluded"]
    assert {"get-sum", "get-tiny-image", "get-env"} <= offered["excluded"]


async def test_a_call_that_tells_progress_for_ever_ends_at_the_cap(home: Path, workspace: Path) -> None:
    timeouts = replace(SOON_ENDED, longest_call_seconds=1)
    async with hosting(home, {"s": scripted("progress", timeout=2500)}, timeouts=timeouts) as host:
        tool = (await host.tools(ToolScope(workspace))).tools["ok"]
        with pytest.raises(ToolFailure, match=r"took longer than 2\.5 s and was cancelled") as failure:
            await result_of(tool, tool_context(workspace))
    assert failure.value.category == "mcp_timeout"


async def test_what_a_server_says_of_its_progress_is_short_and_does_nothing_to_a_terminal(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("rude-progress")}) as host:
        tool = (await host.tools(ToolScope(workspace))).tools["ok"]
        shown: asyncio.Queue[str] = asyncio.Queue()
        call = asyncio.create_task(tool.run({}, running(tool_context(workspace), progress=shown.put_nowait)))
        first = await asyncio.wait_for(shown.get(), 60)
        call.cancel()
        await asyncio.wait({call})
    assert first.startswith("1 gonexxx")
    assert len(first) < 600


async def test_structured_content_that_misses_its_schema_is_a_warning_not_a_failure(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("bad-structured")}) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        result = await success_of(tools["ok"], tool_context(workspace))
        assert said(result) == 'taken as it is\n{\n  "n": "five"\n}'
        assert (result.output.text or "").splitlines() == [
            *said(result).splitlines(),
            "[Warning: the structured content does not match the server's schema for it: "
            "n: 'five' is not of type 'integer']",
        ]
        # A schema with endless references is dropped.
        assert (await success_of(tools["loop"], tool_context(workspace))).output.text == said(result)
        assert (await success_of(tools["twice"], tool_context(workspace))).output.text == said(result)


@pytest.mark.requirement("MCP-010", "MCP-099", "MCP-109")
async def test_a_call_is_proposed_and_made_by_the_servers_own_name_for_the_tool(home: Path, workspace: Path) -> None:
    everything = node_server("server-everything", "stdio")
    async with hosting(home, {"one": everything, "two": everything}) as host:
        tool = (await host.tools(ToolScope(workspace))).tools["two__echo"]
        context = tool_context(workspace)
        assert await tool.propose({"message": "x"}, context) == McpDetails("two", "echo")
        assert said(await success_of(tool, context, message="x")) == "Echo: x"


@pytest.mark.requirement("MCP-025")
async def test_a_projects_server_sees_little_of_the_environment_besides_its_own(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_SECRET", "s")
    monkeypatch.setenv("TOKEN", "t")
    server = {**node_server("server-everything", "stdio"), "env": {"API_KEY": "$TOKEN"}}
    write_servers(workspace, {"everything": server})

    def trusted(folder: Path) -> bool:
        return folder == workspace

    async with hosting(home, {}, trusts=trusted) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        shown = json.loads(said(await success_of(tools["get-env"], tool_context(workspace))))
        assert shown["API_KEY"] == "t"
        inherited = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}
        # Isthmus adds its marks; LC_CTYPE comes from the wrapper around this node, a Python program.
        assert set(shown) <= {"API_KEY", "ISTHMUS_PROCESS_GROUP", "ISTHMUS_SERVER_CHAIN", "LC_CTYPE"} | inherited


async def test_a_clients_own_server_is_connected_for_one_segment_of_its_task(home: Path, workspace: Path) -> None:
    with everything_over("streamableHttp") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        async with hosting(home, {}) as host:
            scope = ToolScope(workspace, "c", "t", (McpServerSettings("mine", url),))
            tools = (await host.tools(scope)).tools
            assert said(await success_of(tools["echo"], tool_context(workspace), message="hi")) == "Echo: hi"
            assert (await host.tools(ToolScope(workspace, "c", "other"))).tools == {}
            await host.release(scope)
            with pytest.raises(ToolFailure, match="is not connected"):
                await result_of(tools["echo"], tool_context(workspace), message="hi")


async def test_only_servers_named_in_the_settings_are_used_and_unknown_names_fail(home: Path, workspace: Path) -> None:
    everything = node_server("server-everything", "stdio")
    async with hosting(home, {"one": everything, "two": everything}) as host:
        tools = (await host.tools(ToolScope(workspace, mcp_servers=(McpServerSettings("two"),)))).tools
        assert {getattr(tool, "server_name", "two") for tool in tools.values()} == {"two"}
        with pytest.raises(ToolFailure, match=r"no MCP server is named 'three' here; configured are: one, two"):
            await host.tools(ToolScope(workspace, mcp_servers=(McpServerSettings("three"),)))


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/mcp", "http://localhost:1/mcp", "http://[::1]:1/", "http://10.0.0.1/"]
)
async def test_a_clients_server_at_an_address_that_the_rule_refuses_is_refused_at_once(
    home: Path, workspace: Path, url: str
) -> None:
    def address_policy(host: str, address: str) -> str | None:
        return "a private address"

    async with hosting(home, {}, address_policy=address_policy) as host:
        with pytest.raises(ToolFailure, match="leads to a private address"):
            host.check(workspace, (McpServerSettings("mine", url),))


async def test_a_name_that_leads_to_a_refused_address_is_not_connected_to(home: Path, workspace: Path) -> None:
    def address_policy(host: str, address: str) -> str | None:
        return "a loopback address" if address.startswith("127.") or address == "::1" else None

    async with hosting(home, {}, address_policy=address_policy) as host:
        name = socket.gethostname()
        scope = ToolScope(workspace, "c", "t", (McpServerSettings("mine", f"http://{name}:1/mcp"),))
        assert (await host.tools(scope)).tools == {}
        (status,) = await host.servers(scope)
        assert status.state is ServerState.DISCONNECTED
        await host.release(scope)


async def test_refresh_shows_a_server_that_was_added_meanwhile(home: Path, workspace: Path) -> None:
    async with hosting(home, {"one": node_server("server-memory")}) as host:
        scope = ToolScope(workspace)
        before = set((await host.tools(scope)).tools)
        settings = home / ".gemini" / "settings.json"
        servers = json.loads(settings.read_text())["mcpServers"]
        servers["two"] = node_server("server-everything", "stdio")
        settings.write_text(json.dumps({"mcpServers": servers}))
        statuses = await host.refresh(scope)
        assert [(status.name, status.state) for status in statuses] == [
            ("one", ServerState.CONNECTED),
            ("two", ServerState.CONNECTED),
        ]
        assert before < set((await host.tools(scope)).tools)
