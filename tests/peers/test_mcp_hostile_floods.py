"""Servers that send too much: the event loop stays free, memory bounded, and the other servers are not affected.

Faults of servers, and the tests for them (``servers``, ``http``, ``sse`` and ``floods`` are test_mcp_hostile_*.py):

===================================  ==================================================================================
missing command, death at start,     servers: a_server_that_cannot_be_used_says_why_and_the_others_go_on
hang at initialize and tools/list
hang at a later listing              floods: a_server_that_hangs_at_a_later_listing_keeps_its_tools...
hang without a handshake             floods: a_server_without_a_handshake_that_does_not_describe_itself...
junk on standard output              servers: junk_on_standard_output_is_passed_over; floods: junk-lines, endless-junk
malformed reply, wrong id            servers: a_call_that_fails_says_whether...; http: not-json, html; sse: malformed
reply twice, reply to nothing        floods: twice, answers-to-nothing
invalid UTF-8                        servers: bytes_that_are_no_utf_8_are_replaced; http, sse: invalid-utf8
one bad tool among good ones         servers: bad_entries_of_a_listing_are_repaired_or_dropped...
$ref loops                           servers: the same, ``loop``; schema bombs: tests/unit/mcp_host/test_schema.py
endless pages, repeated cursors      servers: endless_pages_end; floods: a_cursor_that_comes_again_ends_the_pages
100 MB lines                         servers: a_huge_answer_is_not_kept_in_memory; floods: endless-line
                                     http: endless; sse: many-values
values without number, deep nesting  floods: many-values, deep, deepest, many-blocks, many-bad-blocks; http: the same
floods of notifications, progress,   floods: a_flood_neither_hides_the_result_nor_stops_anything_else
requests, error output
tools that change without end        floods: a_server_that_has_other_tools_each_time_is_listed_less_and_less_often
streams that end at once             http: a_server_that_ends_its_stream_at_once_again_and_again...
ignored SIGTERM, grandchildren       servers: nothing_is_left_of_a_server_when_the_host_closes...
the agent killed                     test_mcp_in_the_agent.py: servers_end_with_an_agent_that_is_killed
death in a call                      servers: a_server_that_died_in_a_call_is_started_again...
session lost (404, 410)              http: forgotten, gone; sse: a_session_that_the_server_forgot...
slow bodies, redirects, 401, 500     http: slow, slow-hello, redirect, wants-login, error-500
compressed answers                   http: compressed
SSE without or with wrong endpoint   sse: a_stream_that_is_none_of_mcp_is_told
slow OAuth endpoints                 test_mcp_oauth_keeping.py, ``slow``
all of it in the whole program       floods: a_turn_goes_on_beside_all_of_them
===================================  ==================================================================================
"""

import asyncio
import contextlib
import json
import logging
import subprocess
import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp
import psutil
import pytest

from isthmus.mcp_host.connection import session
from isthmus.mcp_host.connection.connection_context import McpTimeouts
from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.base import Tool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.mcp_hosting import SOON_ENDED, scripted, status_when, write_servers
from support.mcp_hosting import hosting_soon_ended as hosting
from support.processor_time import seconds_here
from support.tool_calls import result_of, said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

LONGEST_TURN_SECONDS = 2.0
"""Maximum CPU seconds that one step takes on the event loop; without bounds these took ten and more."""
MOST_MEMORY = 150 * 1024**2


def flooding(way: str, *arguments: str, **settings: Any) -> dict[str, Any]:
    return scripted(f"floods-{way}", *arguments, **settings)


@contextlib.asynccontextmanager
async def bounded() -> AsyncGenerator[None]:
    """Check that the block keeps its bounds of the event loop and memory; other processes' CPU time does not count."""
    worst, most = 0.0, 0
    process = psutil.Process()
    before = process.memory_info().rss

    async def watch() -> None:
        nonlocal worst, most
        while True:
            began = time.thread_time()
            await asyncio.sleep(0.01)  # delay: the interval at which the loop is measured
            worst = max(worst, time.thread_time() - began)
            most = max(most, process.memory_info().rss - before)

    watching = asyncio.create_task(watch())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait({watching})
    assert worst < seconds_here(LONGEST_TURN_SECONDS)
    assert most < MOST_MEMORY


@contextlib.asynccontextmanager
async def flooded(
    home: Path, workspace: Path, way: str, timeouts: McpTimeouts = SOON_ENDED, **settings: Any
) -> AsyncGenerator[tuple[McpHost, Tool]]:
    """Start a host with a flooding server and a good one, whose tool works before and after; yield the bad tool."""
    servers = {"s": flooding(way, **settings), "good": scripted("plain")}
    async with hosting(home, servers, timeouts=timeouts) as host, bounded():
        tools = (await host.tools(ToolScope(workspace))).tools
        yield host, tools["ok"]
        assert said(await success_of(tools["good__ok"], tool_context(workspace), x="1")) == "ok 1"


@pytest.mark.requirement("MCP-012", "MCP-132")
@pytest.mark.parametrize(
    ("way", "shown"),
    [
        ("many-blocks", "[100 more blocks are left out]"),
        ("many-bad-blocks", "[9,800 more blocks are left out: too many of them do not fit MCP]"),
        ("twice", "first"),
        ("answers-to-nothing", "after the flood"),
        ("junk-lines", "after the flood"),
        ("error-output", "after the flood"),
        ("progress", "after the flood"),
        ("pings", "after the flood"),
        ("unknown-requests", "after the flood"),
        ("cancels-and-asks", "after the flood"),
        ("byte-order-mark", "after the flood"),
    ],
)
async def test_a_flood_neither_hides_the_result_nor_stops_anything_else(
    home: Path, workspace: Path, way: str, shown: str
) -> None:
    async with flooded(home, workspace, way) as (host, tool):
        context = tool_context(workspace)
        result = await success_of(tool, context)
        kept = [file.read_text() for file in context.output_folder.rglob("*") if file.is_file()]
        assert any(shown in text for text in (said(result), *kept))
        assert said(await success_of(tool, tool_context(workspace))) == "after the flood"  # it can still be called
        await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)


async def test_notifications_that_fit_no_schema_are_counted_and_never_logged_one_by_one(
    home: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with flooded(home, workspace, "misfits") as (host, tool):
        assert said(await success_of(tool, tool_context(workspace))) == "after the flood"
        status = await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        (note,) = [note for note in status.notes if note.startswith("Left out")]
        assert note.startswith("Left out: 2,000 notifications that do not fit MCP; the first: notifications/progress: ")
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_the_logger_that_the_sdk_shares_with_others_stays_theirs(caplog: pytest.LogCaptureFixture) -> None:
    assert session.__name__  # importing it silences the SDK
    log = logging.getLogger("client")
    log.warning("of somebody else")
    sdk = str(Path(mcp.__file__).parent / "client" / "session.py")
    log.handle(log.makeRecord("client", logging.WARNING, sdk, 1, "of the SDK", (), None))
    assert [record.getMessage() for record in caplog.records] == ["of somebody else"]


@pytest.mark.requirement("MCP-132")
@pytest.mark.parametrize(
    ("way", "timeout", "message"),
    [
        ("deep", 60_000, "its answer is nested too deeply"),
        ("deepest", 60_000, "nested too deeply|is not a JSON-RPC message"),
        ("many-values", 60_000, "more than 500,000 objects and lists"),
        ("pings-that-nobody-reads", 2_000, "showed no sign of life for 2 s"),
    ],
)
async def test_an_answer_that_would_take_all_memory_or_time_fails_its_call_alone(
    home: Path, workspace: Path, way: str, timeout: int, message: str
) -> None:
    async with flooded(home, workspace, way, timeout=timeout) as (host, tool):
        with pytest.raises(ToolFailure, match=message):
            await result_of(tool, tool_context(workspace))
        await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)


@pytest.mark.requirement("MCP-124")
@pytest.mark.parametrize("way", ["endless-error-output", "endless-junk", "endless-line"])
async def test_a_server_that_writes_without_end_is_given_up_in_time_at_low_cost(
    home: Path, workspace: Path, way: str
) -> None:
    async with hosting(home, {"s": flooding(way, timeout=800), "good": scripted("plain")}) as host, bounded():
        assert "ok" in (await host.tools(ToolScope(workspace))).tools
        status = await status_when(host, ToolScope(workspace), "s", ServerState.DISCONNECTED)
        assert "no answer to initialize: none came within 0.8 s" in (status.problem or "")


@pytest.mark.requirement("MCP-083", "MCP-124")
async def test_a_server_without_handshake_and_description_is_given_up_in_time(home: Path, workspace: Path) -> None:
    servers = {"s": flooding("hangs-at-discover", timeout=1500), "good": scripted("plain")}
    async with hosting(home, servers) as host:
        assert "ok" in (await host.tools(ToolScope(workspace))).tools
        status = await status_when(host, ToolScope(workspace), "s", ServerState.DISCONNECTED)
        assert "answered initialize with the error -32601" in (status.problem or "")


@pytest.mark.requirement("MCP-083")
@pytest.mark.parametrize("method", ["prompts", "resources", "templates"])
async def test_a_server_that_hangs_at_a_later_listing_keeps_its_tools_and_names_the_gap(
    home: Path, workspace: Path, method: str
) -> None:
    timeouts = replace(SOON_ENDED, optional_listing_seconds=1)
    async with flooded(home, workspace, f"hangs-at-{method}", timeouts) as (host, tool):
        assert said(await success_of(tool, tool_context(workspace))) == "after the flood"
        status = await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        step = "resources/templates" if method == "templates" else method
        assert f"no answer to {step}/list: none came within" in (status.problem or "")
        assert status.prompts == (() if method == "prompts" else ("p",))


async def test_a_listing_of_far_too_many_tools_is_cut_and_told(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": flooding("many-tools")}) as host, bounded():
        assert len((await host.tools(ToolScope(workspace))).tools) == 5_000
        status = await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        assert "45,000 more tools: only the first 5,000 are used" in (status.problem or "")


async def test_a_name_of_ten_thousand_characters_fills_neither_lists_nor_messages(home: Path, workspace: Path) -> None:
    async with flooded(home, workspace, "long-names") as (host, _):
        status = await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        assert len(status.problem or "") < 1_000
        assert [len(tool.name) for tool in status.tools] == [2]


async def test_a_cursor_that_comes_again_ends_the_pages(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": flooding("same-cursor")}) as host:
        assert sorted((await host.tools(ToolScope(workspace))).tools) == ["page_1", "page_2"]


async def test_a_server_that_has_other_tools_each_time_is_listed_less_and_less_often(
    home: Path, workspace: Path
) -> None:
    began = time.monotonic()
    async with flooded(home, workspace, "other-tools-each-time") as (host, _):
        scope = ToolScope(workspace)

        async def number() -> int:
            names = (await host.tools(scope)).tools
            return max(int(name.removeprefix("listing_")) for name in names if name.startswith("listing_"))

        async def fourth() -> bool:
            return await number() >= 4

        await eventually_async(fourth, 60)
        assert time.monotonic() - began >= 1.3  # 0.2, 0.4 and 0.8 s after one another


@pytest.mark.requirement("MCP-083", "MCP-132")
def test_a_turn_goes_on_beside_all_of_them(isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path) -> None:
    floods = ("endless-junk", "endless-error-output", "hangs-at-prompts", "many-tools", "other-tools-each-time")
    servers = {
        "good": scripted("plain", trust=True),
        **{way: flooding(way, str(tmp_path), timeout=2000) for way in floods},
    }
    write_servers(isolated_folders.home, servers)
    script = tmp_path / "script.yaml"
    calls = "call: {name: ok, arguments: {x: one}}"
    script.write_text(f"name: m\nscenarios:\n  - prompt: '.'\n    replies:\n      - {calls}\n      - text: done\n")
    command = [*ISTHMUS, "-p", "go", "-o", "json", "-m", f"scripted:{script}", "--no-ide"]
    ended = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "data")],
        cwd=workspace, capture_output=True, text=True, encoding="utf-8", timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 0
    missing, withheld = ended.stderr.splitlines()
    assert "running without the tools of these MCP servers: endless-junk" in missing
    assert "not offered these tools" in withheld
    assert "many-tools, other-tools-each-time" in withheld
    assert json.loads(ended.stdout)["response"] == "done"
    lines: list[Any] = [process.info["cmdline"] for process in psutil.process_iter(["cmdline"])]
    assert not [line for line in lines if str(tmp_path) in (line or ())]
