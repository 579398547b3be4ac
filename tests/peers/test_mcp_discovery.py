"""Discovery: its state, the servers that a turn waits for, stored servers, and the rest of a killed agent."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import DiscoveryState, ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.extended import first_of
from support.isolation import IsolatedFolders
from support.mcp_hosting import SCRIPTED, SOON_ENDED, scripted, status_when, write_servers
from support.mcp_hosting import hosting_soon_ended as hosting
from support.process_families import is_alive
from support.tool_calls import success_of, tool_context
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def scope(workspace: Path) -> ToolScope:
    return ToolScope(workspace)


async def states(host: McpHost, scope: ToolScope) -> dict[str, ServerState]:
    return {status.name: status.state for status in await host.servers(scope)}


@pytest.mark.requirement("MCP-004", "MCP-077", "MCP-127", "MCP-128")
async def test_every_configured_server_is_connecting_from_the_first_moment(home: Path, scope: ToolScope) -> None:
    servers = {"a": scripted("hangs"), "b": scripted("plain"), "c": scripted("dies")}
    async with hosting(home, servers) as host:
        assert await host.discovery(scope) is DiscoveryState.NOT_STARTED
        host.begin(scope.workspace)
        assert await host.discovery(scope) is DiscoveryState.IN_PROGRESS
        assert await states(host, scope) == dict.fromkeys("abc", ServerState.CONNECTING)


@pytest.mark.requirement("MCP-096", "MCP-097", "MCP-129", "MCP-138")
async def test_servers_with_tools_stay_connected_and_useless_ones_are_closed_and_say_so(
    home: Path, scope: ToolScope, tmp_path: Path
) -> None:
    pids = {name: tmp_path / name for name in ("good", "empty")}
    servers = {"good": scripted("plain", str(pids["good"])), "empty": scripted("nothing", str(pids["empty"]))}
    async with hosting(home, {**servers, "bad": scripted("dies")}) as host:
        await host.tools(scope)
        await eventually_async(lambda: not psutil.pid_exists(int(pids["empty"].read_text())))
        assert await host.discovery(scope) is DiscoveryState.COMPLETED
        status = await status_when(host, scope, "empty", ServerState.DISCONNECTED)
        assert "it is connected but offers nothing usable" in (status.problem or "")
        assert psutil.pid_exists(int(pids["good"].read_text()))
        assert (await states(host, scope))["good"] is ServerState.CONNECTED


async def test_a_bad_prompt_is_dropped_with_its_reason_and_the_good_one_stays(home: Path, scope: ToolScope) -> None:
    async with hosting(home, {"s": scripted("bad-prompts")}) as host:
        await host.tools(scope)
        status = await status_when(host, scope, "s", ServerState.CONNECTED)
    assert status.prompts == ("fine",)
    assert "in its listing: prompts/list: prompts[0]: expected an object" in (status.problem or "")


async def test_who_is_waited_for_is_told_by_name(home: Path, scope: ToolScope) -> None:
    told: list[Sequence[str]] = []

    def tell(servers: Sequence[str], seconds: float) -> None:
        assert seconds > 0
        told.append(servers)

    servers = {"slow": scripted("hangs"), "quick": scripted("plain"), "slower": scripted("hangs")}
    timeouts = replace(SOON_ENDED, report_seconds=0.1)
    async with hosting(home, servers, wait_seconds=1000, on_wait=tell, timeouts=timeouts) as host:
        asking = asyncio.create_task(host.tools(scope))
        await eventually_async(lambda: ("slow", "slower") in told, 60)
        asking.cancel()
        await asyncio.wait({asking})
        assert told[-1] == ()  # the waiting is over


async def test_a_server_that_hung_is_waited_for_less_at_the_next_start_which_says_so(
    home: Path, scope: ToolScope, tmp_path: Path
) -> None:
    servers, cache = {"s": scripted("hangs"), "good": scripted("plain")}, tmp_path / "cache"
    timeouts, wait = replace(SOON_ENDED, held_seconds=0.1), 0.4
    for waited in ("0.4 s", "0.1 s instead of 0.4 s, because it could not be used in the last run", "0.4 s"):
        async with hosting(home, servers, cache=cache, wait_seconds=wait, timeouts=timeouts) as host:
            tools = await asyncio.wait_for(host.tools(scope), 60)
            assert "s" in tools.missing_servers
            found = {status.name: status for status in await host.servers(scope)}
            assert found["s"].state is ServerState.CONNECTING
            assert (found["s"].problem or "").startswith(f"it was waited for {waited}")


async def test_one_that_was_late_and_comes_after_all_has_its_tools_at_the_next_step(
    home: Path, scope: ToolScope, tmp_path: Path
) -> None:
    listed, hold = tmp_path / "listed.json", tmp_path / "listed.json.hold"
    listed.write_text(json.dumps([{"name": "ok", "inputSchema": {"type": "object"}}]))
    hold.touch()
    servers = {"s": scripted("listed", str(tmp_path / "pids"), str(listed))}
    async with hosting(home, servers, wait_seconds=0.1) as host:
        tools = await host.tools(scope)
        assert tools.tools == {}
        hold.unlink()
        await status_when(host, scope, "s", ServerState.CONNECTED)
        tools = await host.renewed(scope, tools)
        assert (list(tools.tools), tools.missing_servers) == (["ok"], ())


async def test_one_that_is_required_is_waited_for_also_when_it_was_late(
    home: Path, scope: ToolScope, tmp_path: Path
) -> None:
    servers, cache = {"s": scripted("hangs", timeout=300, required=True)}, tmp_path / "cache"
    for _ in range(2):
        async with hosting(home, servers, cache=cache, wait_seconds=0.01) as host:
            with pytest.raises(ToolFailure, match="MCP servers are not connected: s: no answer to") as failure:
                await host.tools(scope)
            assert failure.value.category == "mcp_required"
            assert "no answer" not in failure.value.message_for("another user")


async def test_one_that_was_quick_to_fail_is_waited_for_at_the_next_start(
    home: Path, scope: ToolScope, tmp_path: Path
) -> None:
    program, cache = tmp_path / "server.py", tmp_path / "cache"
    program.write_text("raise SystemExit(3)\n")
    servers = {"s": {"command": sys.executable, "args": ["-S", str(program), "plain"]}}
    async with hosting(home, servers, cache=cache) as host:
        assert (await host.tools(scope)).tools == {}
    program.unlink()
    program.symlink_to(SCRIPTED)
    async with hosting(home, servers, cache=cache) as host:
        assert list((await host.tools(scope)).tools) == ["ok"]


@pytest.mark.parametrize(
    ("settings", "is_strict"),
    [
        ({"required": True, "command": 5}, False),
        ({"command": "no-such-program", "required": True}, False),
        ({"command": "no-such-program"}, True),
        ({"command": 5}, True),
    ],
)
async def test_no_turn_begins_without_a_server_that_is_required(
    home: Path, scope: ToolScope, settings: dict[str, Any], is_strict: bool
) -> None:
    servers = {"bad": settings, "off": {"command": "no-such-program", "required": True, "disabled": True}}
    async with hosting(home, servers, is_strict=is_strict) as host:
        with pytest.raises(ToolFailure, match="required MCP servers are not connected: bad: ") as failure:
            await host.tools(scope)
        assert "off" not in failure.value.message_for("another user")


async def test_twenty_servers_of_which_some_hang_connect_all_others(home: Path, scope: ToolScope) -> None:
    hanging = {f"hangs{number}": scripted("hangs") for number in range(10)}
    async with hosting(home, {**hanging, **{f"s{number}": scripted("plain") for number in range(10)}}) as host:
        host.begin(scope.workspace)

        async def connected() -> bool:
            return list((await states(host, scope)).values()).count(ServerState.CONNECTED) == 10

        await eventually_async(connected, 60)


async def test_a_flood_of_changes_is_listed_few_times_and_costs_no_memory(home: Path, scope: ToolScope) -> None:
    async with hosting(home, {"s": scripted("flood-of-changes")}) as host:
        tool = (await host.tools(scope)).tools["ok"]
        context = tool_context(scope.workspace)
        await success_of(tool, context)
        before = psutil.Process().memory_info().rss
        for _ in range(3):
            await success_of(tool, context)
        told = (await success_of(tool, context)).for_model
        times = int(told.partition("listed ")[2].split()[0])
        assert times < 100
        assert psutil.Process().memory_info().rss - before < 50 * 1024**2


async def test_many_servers_are_closed_side_by_side(home: Path, scope: ToolScope, tmp_path: Path) -> None:
    """Check this with servers that ignore the signal to end."""
    pids = tmp_path / "pids"
    servers = {f"s{number}": scripted("ignores-end", str(pids)) for number in range(20)}
    async with hosting(home, servers) as host:
        await host.tools(scope)
        family = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        assert len(family) == 20
        began = time.monotonic()
    # Each takes more than a second: one after the other they would take longer than this on any machine.
    assert time.monotonic() - began < 20
    eventually(lambda: not any(map(is_alive, family)))


@pytest.mark.requirement("MCP-139")
@pytest.mark.parametrize("number", first_of([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]))
async def test_nothing_is_left_of_the_servers_of_a_turn_without_a_user_that_is_killed(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, number: signal.Signals
) -> None:
    pids = tmp_path / "pids"
    servers = {"launched": scripted("launcher", str(pids)), "hanging": scripted("hangs", str(pids))}
    write_servers(isolated_folders.home, servers)
    command = (sys.executable, "-m", "isthmus", "-p", "hi", "-m", "demo")
    null = asyncio.subprocess.DEVNULL
    errors = tmp_path / "errors"
    with errors.open("w") as said:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=workspace, stdin=null, stdout=null, stderr=said, env=dict(os.environ)
        )

    def has_started_all() -> bool:
        assert process.returncode is None, errors.read_text()
        # The launcher's stray and its server, and the hanging one, which the turn waits for.
        assert len(pids.read_text().split() if pids.exists() else ()) >= 3, errors.read_text()
        return True

    try:
        await eventually_async(has_started_all, 60)
        family = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        process.send_signal(number)
        await asyncio.wait_for(process.wait(), 60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    await eventually_async(lambda: not any(map(is_alive, family)), 60)
