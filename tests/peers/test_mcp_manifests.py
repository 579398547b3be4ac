"""The agent's stored data about its servers between two starts, and its reaction if they have changed."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.base import Approved, version_of
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import DiscoveryState, ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, scripted, status_when, write_servers
from support.tool_calls import result_of, said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

TOOL: dict[str, Any] = {"name": "ok", "description": "Works.", "inputSchema": {"type": "object", "properties": {}}}


class Listed:
    """A server that lists the content of a file, and lets clients wait while another file exists."""

    def __init__(self, folder: Path, name: str = "listed") -> None:
        self.file = folder / f"{name}.json"
        self.hold = Path(f"{self.file}.hold")
        self.starts = folder / f"{name}.starts"
        self.lists(TOOL)

    def lists(self, *tools: dict[str, Any]) -> None:
        self.file.write_text(json.dumps(tools))

    def settings(self, **settings: Any) -> dict[str, Any]:
        return scripted("listed", str(self.starts), str(self.file), **settings)

    @property
    def started(self) -> int:
        return len(self.starts.read_text().split()) if self.starts.exists() else 0


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def scope(workspace: Path) -> ToolScope:
    return ToolScope(workspace)


async def names_of(host: McpHost, scope: ToolScope) -> list[str]:
    return list((await host.tools(scope)).tools)


def held_of(cache: Path) -> list[bool]:
    """Return, for each stored server, whether it was unusable the last time."""
    manifests = [json.loads(file.read_text())["manifest"] for file in cache.glob("*.json")]
    return sorted(bool(manifest.get("is_held")) for manifest in manifests)


async def once(home: Path, scope: ToolScope, cache: Path, servers: dict[str, Any]) -> list[str]:
    """Run a first start, after which data is stored of each usable server."""
    async with hosting(home, servers, cache=cache) as host:
        names = await names_of(host, scope)
        files = len(servers)
        await eventually_async(lambda: len(list(cache.glob("*.json"))) == files)
        return names


async def test_known_tools_stay_when_a_start_ended_before_their_slow_server_connected(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    listed = Listed(tmp_path)
    servers = {"s": listed.settings()}
    assert await once(home, scope, cache, servers) == ["ok"]
    listed.hold.touch()
    for _ in range(2):
        begun = listed.started
        async with hosting(home, servers, cache=cache, wait_seconds=1000) as host:
            assert await names_of(host, scope) == ["ok"]
            await eventually_async(lambda begun=begun: listed.started > begun)
        assert held_of(cache) == [False]


@pytest.mark.requirement("MCP-077", "MCP-125", "MCP-126")
async def test_tools_are_there_at_once_at_the_next_start_and_a_call_awaits_the_connection(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    listed = Listed(tmp_path)
    servers = {"s": listed.settings()}
    assert await once(home, scope, cache, servers) == ["ok"]
    listed.hold.touch()
    async with hosting(home, servers, cache=cache, wait_seconds=1000) as host:
        tool = (await asyncio.wait_for(host.tools(scope), 60)).tools["ok"]
        (status,) = await host.servers(scope)
        assert status.state is ServerState.CONNECTING
        assert "Listed: when it was last connected" in status.notes
        assert await host.discovery(scope) is DiscoveryState.IN_PROGRESS
        calling = asyncio.create_task(success_of(tool, tool_context(scope.workspace)))
        await eventually_async(lambda: listed.started == 2)
        assert not calling.done()
        listed.hold.unlink()
        assert "ok" in said(await asyncio.wait_for(calling, 60))
        status = await status_when(host, scope, "s", ServerState.CONNECTED)
        assert "Listed: when it was last connected" not in status.notes


async def test_a_call_of_a_tool_changed_since_it_was_kept_waits_until_rewritten(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    listed = Listed(tmp_path)
    servers = {"s": listed.settings()}
    await once(home, scope, cache, servers)
    listed.lists({**TOOL, "description": "Deletes everything."}, {**TOOL, "name": "new"})
    listed.hold.touch()
    async with hosting(home, servers, cache=cache) as host:
        tool = (await host.tools(scope)).tools["ok"]
        before = version_of(tool)
        proposed = Approved(await tool.propose({}, tool_context(scope.workspace)), version=before)
        calling = asyncio.create_task(result_of(tool, tool_context(scope.workspace), proposed))
        listed.hold.unlink()
        with pytest.raises(ToolFailure, match=r"has changed its tool 'ok' since .* nothing was called") as failure:
            await asyncio.wait_for(calling, 60)
        assert failure.value.category == "tool_changed"
        # The same tool can be called through the new server, and its new data is there.
        assert tool.description.startswith("Deletes everything.")
        assert version_of(tool) != before
        assert "ok" in said(await success_of(tool, tool_context(scope.workspace)))
        assert await names_of(host, scope) == ["ok", "new"]
    listed.hold.touch()
    async with hosting(home, servers, cache=cache) as host:
        assert await names_of(host, scope) == ["ok", "new"]


async def test_a_call_of_a_tool_that_is_gone_says_so(home: Path, scope: ToolScope, cache: Path, tmp_path: Path) -> None:
    listed = Listed(tmp_path)
    servers = {"s": listed.settings()}
    await once(home, scope, cache, servers)
    listed.lists({**TOOL, "name": "other"})
    listed.hold.touch()
    async with hosting(home, servers, cache=cache) as host:
        tool = (await host.tools(scope)).tools["ok"]
        listed.hold.unlink()
        with pytest.raises(ToolFailure, match="'s' no longer has the tool 'ok'; nothing was called"):
            await result_of(tool, tool_context(scope.workspace))


async def test_a_failing_server_keeps_its_tools_out_and_its_names_also_at_the_next_start(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    listed, other = Listed(tmp_path), Listed(tmp_path, "other")
    servers = {"first": listed.settings(), "second": other.settings()}
    assert await once(home, scope, cache, servers) == ["ok", "second__ok"]
    content = listed.file.read_text()
    listed.file.unlink()
    async with hosting(home, servers, cache=cache) as host:
        await host.tools(scope)
        await status_when(host, scope, "first", ServerState.DISCONNECTED)
        assert await names_of(host, scope) == ["second__ok"]
        # It is stored after the failure is reported, or at the latest when the host closes.
        await eventually_async(lambda: held_of(cache) == [False, True], 30)
    listed.file.write_text(content)
    listed.hold.touch()
    async with hosting(home, servers, cache=cache, wait_seconds=0.1) as host:
        assert await names_of(host, scope) == ["second__ok"]
        listed.hold.unlink()
        await status_when(host, scope, "first", ServerState.CONNECTED)
        assert await names_of(host, scope) == ["ok", "second__ok"]


@pytest.mark.requirement("MCP-008")
async def test_names_are_in_configuration_order_also_when_the_first_server_is_slow(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    first, second = Listed(tmp_path, "first"), Listed(tmp_path, "second")
    servers = {"first": first.settings(), "second": second.settings()}
    first.hold.touch()
    async with hosting(home, servers, cache=cache, wait_seconds=0.1) as host:
        await host.tools(scope)
        await status_when(host, scope, "second", ServerState.CONNECTED)
        assert await names_of(host, scope) == ["ok"]
        first.hold.unlink()
        await status_when(host, scope, "first", ServerState.CONNECTED)
        # The model's tools stay the same while the agent runs.
        tools = (await host.tools(scope)).tools
        assert {name: getattr(tool, "server_name", "") for name, tool in tools.items()} == {
            "first__ok": "first",
            "ok": "second",
        }
        await eventually_async(lambda: len(list(cache.glob("*.json"))) == 2)
    first.hold.touch()
    async with hosting(home, servers, cache=cache, wait_seconds=0.1) as host:
        tools = (await host.tools(scope)).tools
        assert {name: getattr(tool, "server_name", "") for name, tool in tools.items()} == {
            "ok": "first",
            "second__ok": "second",
        }


async def test_a_lazy_server_is_started_once_to_learn_its_tools_then_at_its_first_call(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    listed = Listed(tmp_path)
    servers = {"s": listed.settings(lazy=True)}
    assert await once(home, scope, cache, servers) == ["ok"]
    assert listed.started == 1
    async with hosting(home, servers, cache=cache) as host:
        tool = (await host.tools(scope)).tools["ok"]
        (status,) = await host.servers(scope)
        assert status.state is ServerState.DISCONNECTED
        assert [found.name for found in status.tools] == ["ok"]
        assert await host.discovery(scope) is DiscoveryState.COMPLETED
        assert listed.started == 1
        # Another server that connects meanwhile does not wake it.
        write_servers(home, {**servers, "other": scripted("nothing")})
        await asyncio.wait_for(host.refresh(scope, "other"), 60)
        assert listed.started == 1
        assert "ok" in said(await success_of(tool, tool_context(scope.workspace)))
        assert listed.started == 2
        await status_when(host, scope, "s", ServerState.CONNECTED)


@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint"])
async def test_a_call_that_does_no_harm_is_made_once_more_when_its_server_died_in_it(
    home: Path, scope: ToolScope, tmp_path: Path, hint: str
) -> None:
    listed = Listed(tmp_path)
    listed.lists({**TOOL, "name": "die", "annotations": {hint: True}})
    async with hosting(home, {"s": listed.settings(trust=True)}) as host:
        tool = (await host.tools(scope)).tools["die"]
        assert "lived" in said(await success_of(tool, tool_context(scope.workspace)))
    assert Path(f"{listed.file}.calls").read_text().split() == ["call", "call"]


@pytest.mark.parametrize(
    ("annotations", "trust"), [({"readOnlyHint": True}, False), ({}, True), ({"destructiveHint": True}, True)]
)
async def test_every_other_call_is_made_once_whatever_becomes_of_it(
    home: Path, scope: ToolScope, tmp_path: Path, annotations: dict[str, bool], trust: bool
) -> None:
    listed = Listed(tmp_path)
    listed.lists({**TOOL, "name": "die", "annotations": annotations})
    async with hosting(home, {"s": listed.settings(trust=trust)}) as host:
        tool = (await host.tools(scope)).tools["die"]
        with pytest.raises(ToolFailure, match="was not repeated"):
            await result_of(tool, tool_context(scope.workspace))
        await status_when(host, scope, "s", ServerState.CONNECTED)
    assert Path(f"{listed.file}.calls").read_text().split() == ["call"]


async def test_no_secret_of_the_configuration_is_kept(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path
) -> None:
    listed = Listed(tmp_path)
    await once(home, scope, cache, {"s": listed.settings(env={"API_KEY": "tell-nobody"})})
    for file in cache.iterdir():
        assert b"tell-nobody" not in file.read_bytes()
