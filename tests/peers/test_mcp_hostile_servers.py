import asyncio
import contextlib
import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

import psutil
import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.base import Approved, Tool, ToolFailed, ToolKind
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, scripted, status_when
from support.process_families import is_alive
from support.tool_calls import failure_of, progress_and_result, result_of, said, success_of, tool_context
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio


async def tool_of(host: McpHost, workspace: Path, name: str = "ok") -> Tool:
    return (await host.tools(ToolScope(workspace))).tools[name]


@pytest.mark.requirement("MCP-083", "MCP-098", "MCP-124")
@pytest.mark.parametrize(
    ("server", "problem"),
    [
        pytest.param(
            {"command": "no-such-program-anywhere"},
            "the program 'no-such-program-anywhere' was not found",
            marks=pytest.mark.requirement("MCP-130"),
        ),
        pytest.param(
            {"command": "true", "cwd": "no/such/folder"},
            "no/such/folder does not exist",
            marks=pytest.mark.requirement("MCP-130"),
        ),
        pytest.param(
            scripted("dies"),
            "it ended with exit code 3 before it answered initialize; its last output: ImportError",
            marks=pytest.mark.requirement("MCP-130"),
        ),
        pytest.param(
            scripted("hangs", timeout=700),
            "no answer to initialize: none came within 0.7 s",
            marks=pytest.mark.requirement("MCP-082"),
        ),
        (scripted("hangs-later", timeout=700), "no answer to initialize: none came within 0.7 s"),
        (scripted("hangs-at-list", timeout=1500), "no answer to tools/list: none came within 1.5 s"),
        (scripted("bad-version"), "3000-01-01"),
        (scripted("no-list"), "nothing usable (tools: expected a list, received str)"),
        (scripted("refuses-list"), "it answered tools/list with the error -32000: the index is locked"),
        (scripted("nothing"), "it is connected but offers nothing usable"),
        pytest.param(
            scripted("plain", includeTools=["OK", "oook(x)"]),
            "offers nothing usable (includeTools names 'OK', 'oook', which it does not have; it has: ok)",
            marks=pytest.mark.requirement("MCP-131"),
        ),
    ],
)
async def test_a_server_that_cannot_be_used_says_why_and_the_others_go_on(
    home: Path, workspace: Path, server: dict[str, object], problem: str
) -> None:
    async with hosting(home, {"bad": server, "good": scripted("plain")}) as host:
        scope = ToolScope(workspace)
        assert list((await host.tools(scope)).tools) == ["ok"]
        status = await status_when(host, scope, "bad", ServerState.DISCONNECTED)
        assert problem in (status.problem or "")
        good = await status_when(host, scope, "good", ServerState.CONNECTED)
        assert good.problem is None
        assert said(await success_of(await tool_of(host, workspace), tool_context(workspace), x="1")) == "ok 1"


@pytest.mark.requirement("MCP-117", "MCP-120")
async def test_a_token_that_a_server_repeats_in_its_error_output_is_not_shown(home: Path, workspace: Path) -> None:
    words = ["-c", "printenv MY_TOKEN >&2; exit 3"]
    async with hosting(home, {"bad": {"command": "sh", "args": words, "env": {"MY_TOKEN": "tell-nobody"}}}) as host:
        await host.tools(ToolScope(workspace))
        status = await status_when(host, ToolScope(workspace), "bad", ServerState.DISCONNECTED)
    assert "its last output: ***" in (status.problem or "")
    assert "tell-nobody" not in str(status)


async def test_nothing_looks_after_the_handshake_any_more_once_a_server_is_connected(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("plain")}) as host:
        await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        await eventually_async(lambda: not [task for task in asyncio.all_tasks() if "connecting" in task.get_name()])


@pytest.mark.requirement("MCP-130")
async def test_a_file_that_may_not_be_run_is_named(home: Path, workspace: Path, tmp_path: Path) -> None:
    program = tmp_path / "server"
    program.write_text("x")
    async with hosting(home, {"bad": {"command": str(program)}}) as host:
        await host.tools(ToolScope(workspace))
        status = await status_when(host, ToolScope(workspace), "bad", ServerState.DISCONNECTED)
        assert f"the program {str(program)!r} may not be run" in (status.problem or "")


async def test_bad_entries_of_a_listing_are_repaired_or_dropped_and_the_good_ones_stay(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("bad-entries")}) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        mended = ["no_schema", "php", "bad_extras", "loop", "numbers"]
        assert list(tools) == [*mended, "s__elicitation", "s__sampling", "ok"]
        json.dumps([tool.parameters for tool in tools.values()], allow_nan=False)
        status = await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        for told in ("tools[0]: expected an object", "string_schema: ", "ok: it is listed twice"):
            assert told in (status.problem or ""), told
        result = await success_of(tools["loop"], tool_context(workspace), p={"a": {}})
        assert said(result) == "ok"


async def test_endless_pages_end(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("endless-pages")}) as host:
        assert len((await host.tools(ToolScope(workspace))).tools) == 50
        status = await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        assert "tools/list has more than 50 pages: only the first 50 entries are used" in (status.problem or "")


async def test_junk_on_standard_output_is_passed_over(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("junk")}) as host:
        result = await success_of(await tool_of(host, workspace), tool_context(workspace), x="a")
        assert said(result) == "ok a"


@pytest.mark.requirement("MCP-012", "MCP-132")
@pytest.mark.parametrize(
    ("way", "category", "message"),
    [
        ("malformed", "mcp_error", "its answer is not a JSON-RPC message"),
        ("huge", "mcp_error", "bytes; at most 32 MiB are accepted"),
        ("silent", "mcp_timeout", "showed no sign of life for 2 s"),
        ("wrong-id", "mcp_timeout", "showed no sign of life for 2 s"),
        ("dies-in-call", "mcp_server_lost", "ended with exit code 7 before it answered"),
        ("own-error", "mcp_error", "failed with the error -32000: the quota is used up"),
        ("rpc-error", "invalid_arguments", "failed with the error -32602: x is wrong"),
    ],
)
async def test_a_call_that_fails_says_whether_server_answer_or_time_was_the_cause(
    home: Path, workspace: Path, way: str, category: str, message: str
) -> None:
    timeout = 2_000 if category == "mcp_timeout" else 60_000
    async with hosting(home, {"s": scripted(way, timeout=timeout)}) as host:
        tool = await tool_of(host, workspace)
        with pytest.raises(ToolFailure, match=message) as failure:
            await result_of(tool, tool_context(workspace), x="a")
        assert failure.value.category == category


async def test_a_huge_answer_is_not_kept_in_memory(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("huge")}) as host:
        tool = await tool_of(host, workspace)
        before = psutil.Process().memory_info().rss
        with pytest.raises(ToolFailure, match="104857"):
            await result_of(tool, tool_context(workspace), x="a")
        assert psutil.Process().memory_info().rss - before < 90 * 1024**2


async def test_bytes_that_are_no_utf_8_are_replaced(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("invalid-utf8")}) as host:
        result = await success_of(await tool_of(host, workspace), tool_context(workspace))
        assert said(result) == "a��b"


async def test_half_characters_are_replaced_everywhere_so_that_all_can_be_written(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("surrogates")}) as host:
        tool = await tool_of(host, workspace)
        json.dumps([tool.description, dict(tool.parameters)], ensure_ascii=False).encode()
        assert tool.description.startswith("half ?")
        assert said(await success_of(tool, tool_context(workspace))) == "half ?"


async def test_content_that_mcp_does_not_have_is_described_and_the_rest_is_kept(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("unknown-content")}) as host:
        result = await success_of(await tool_of(host, workspace), tool_context(workspace))
        assert "'hologram'" in said(result)
        assert "\nfine\nbare\n[1, 2]" in said(result)


async def test_a_flood_of_notifications_does_not_hide_the_result(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("flood")}) as host:
        result = await success_of(await tool_of(host, workspace), tool_context(workspace))
        assert said(result) == "after the flood"


async def test_an_error_that_the_tool_reports_is_a_failed_call_that_the_model_reads(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("error-result")}) as host:
        failed = await failure_of(await tool_of(host, workspace), tool_context(workspace))
        assert isinstance(failed, ToolFailed)
        assert (failed.error.message, failed.error.type) == ("no such table", "mcp_tool_error")


async def test_a_long_output_is_cut_in_the_middle_and_kept_whole_in_a_file(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("long")}) as host:
        context = tool_context(workspace)
        result = await success_of(await tool_of(host, workspace), context)
        assert said(result).startswith("line 0\n")
        assert "line 19999" in said(result)
        assert len(said(result)) < 40_000
        (file,) = context.output_folder.iterdir()
        assert str(file) in said(result)
        assert len(file.read_text().splitlines()) == 20_000


async def test_progress_is_shown_and_puts_off_the_deadline_of_silence(home: Path, workspace: Path) -> None:
    # Longer altogether than it may be silent.
    async with hosting(home, {"s": scripted("progress", timeout=2500)}) as host:
        tool = await tool_of(host, workspace)
        shown, result = await progress_and_result(tool, tool_context(workspace))
        assert len(shown) >= 2
        assert all(re.fullmatch(r"\d+% \((\d) of 8\) step \1", text) for text in shown)
        assert said(result) == "done"


async def test_leaving_a_call_tells_the_server_that_it_is_cancelled(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    told = tmp_path / "pid.cancelled"
    async with hosting(home, {"s": scripted("cancellable", str(tmp_path / "pid"))}) as host:
        tool = await tool_of(host, workspace)
        calling = asyncio.create_task(result_of(tool, tool_context(workspace)))
        await eventually_async((tmp_path / "pid.called").exists)
        assert not calling.done()
        calling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await calling
        await eventually_async(told.exists)


async def test_a_server_that_says_its_tools_changed_is_listed_anew(home: Path, workspace: Path) -> None:
    async with hosting(home, {"s": scripted("changing")}) as host:
        await success_of(await tool_of(host, workspace), tool_context(workspace))

        async def changed() -> bool:
            return "new_1" in (await host.tools(ToolScope(workspace))).tools

        await eventually_async(changed)


async def test_a_server_that_died_in_a_call_is_started_again_and_the_call_is_not_repeated(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    async with hosting(home, {"s": scripted("dies-in-call", str(starts))}) as host:
        tool = await tool_of(host, workspace)
        with pytest.raises(ToolFailure, match="was not repeated"):
            await result_of(tool, tool_context(workspace))
        await eventually_async(lambda: len(starts.read_text().split()) == 2)
        await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)
        assert len(starts.read_text().split()) == 2


async def test_a_server_that_was_killed_between_calls_answers_the_next_one(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    starts = tmp_path / "starts"
    async with hosting(home, {"s": scripted("plain", str(starts))}) as host:
        tool = await tool_of(host, workspace)
        os.kill(int(starts.read_text()), 9)
        await eventually_async(lambda: not psutil.pid_exists(int(starts.read_text().split()[0])))

        async def answers() -> bool:
            with contextlib.suppress(ToolFailure):
                return said(await success_of(tool, tool_context(workspace), x="b")) == "ok b"
            return False

        await eventually_async(answers)


@pytest.mark.requirement("MCP-139")
@pytest.mark.parametrize("way", ["plain", "ignores-end", "grandchild", "silent"])
async def test_nothing_is_left_of_a_server_when_the_host_closes_without_waiting_for_it(
    home: Path, workspace: Path, tmp_path: Path, way: str
) -> None:
    pid_file = tmp_path / "pid"
    async with hosting(home, {"s": scripted(way, str(pid_file))}) as host:
        await tool_of(host, workspace)
        server = psutil.Process(int(pid_file.read_text()))
        family = [server, *server.children(recursive=True)]
        assert len(family) == (2 if way == "grandchild" else 1)
        began = time.monotonic()
    assert time.monotonic() - began < 60
    eventually(lambda: not any(map(is_alive, family)))


async def test_read_only_counts_only_for_a_server_that_the_user_trusts(home: Path, workspace: Path) -> None:
    servers = {"trusted": scripted("read-only", trust=True), "other": scripted("read-only")}
    async with hosting(home, servers) as host:
        found = await host.tools(ToolScope(workspace))
        assert found.trusted_servers == {"trusted"}
        assert {name: tool.kind for name, tool in found.tools.items()} == {
            "ok": ToolKind.READ,
            "other__ok": ToolKind.OTHER,
        }


@pytest.mark.requirement("MCP-100", "MCP-108")
async def test_arguments_that_do_not_fit_the_schema_never_reach_the_server(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    noted = tmp_path / "calls"
    Path(f"{noted}.quick").touch()
    async with hosting(home, {"s": scripted("slow", str(tmp_path / "pids"), str(noted))}) as host:
        tool, context = await tool_of(host, workspace), tool_context(workspace)
        with pytest.raises(ToolFailure, match=r"ok: x: 3 is not of type 'string'") as failure:
            await tool.propose({"x": 3}, context)
        assert failure.value.category == "invalid_arguments"
        # Also if they were edited after the proposal.
        with pytest.raises(ToolFailure, match=r"ok: x: 3 is not of type 'string'"):
            await result_of(tool, context, Approved(await tool.propose({"x": "3"}, context)), x=3)
        assert not noted.exists()
        await success_of(tool, context, x="3")
        assert noted.read_text() == "call\n"


async def test_a_pattern_of_a_server_that_takes_for_ever_to_match_is_left_to_the_server(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("slow-pattern")}) as host:
        tool = await tool_of(host, workspace)
        value = "a" * 60 + "!"
        assert said(await success_of(tool, tool_context(workspace), x=value)) == f"ok {value}"
        with pytest.raises(ToolFailure, match="5 is not of type 'string'"):
            await result_of(tool, tool_context(workspace), x=5)


async def test_a_host_that_closes_while_a_server_hangs_does_not_wait_for_it(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    async with hosting(home, {"s": scripted("hangs", str(pid_file))}, wait_seconds=0.1) as host:
        await host.tools(ToolScope(workspace))
        await eventually_async(lambda: pid_file.exists() and pid_file.read_text())
        began = time.monotonic()
    assert time.monotonic() - began < 60
    eventually(lambda: not psutil.pid_exists(int(pid_file.read_text())))


async def test_a_session_waits_for_a_slow_server_once_only(home: Path, workspace: Path) -> None:
    ends: list[float] = []

    def tell(servers: Sequence[str], seconds: float) -> None:
        if not servers:  # the waiting is over
            ends.append(seconds)

    async with hosting(home, {"s": scripted("hangs")}, wait_seconds=0.5, on_wait=tell) as host:
        for _ in range(3):
            await host.tools(ToolScope(workspace))
    assert len(ends) == 1


async def test_of_many_servers_those_of_the_longest_unused_workspace_are_closed(home: Path, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    async with hosting(home, {"s": scripted("plain", str(starts))}) as host:
        for number in range(10):
            folder = tmp_path / f"workspace-{number}"
            folder.mkdir()
            scope = ToolScope(folder, "c", f"t{number}")
            await host.tools(scope)
            if number != 0:
                await host.release(scope)
        pids = [int(pid) for pid in starts.read_text().split()]
        assert len(pids) == 10
        # The first is in use; the two after it had to go.
        eventually(lambda: [psutil.pid_exists(pid) for pid in pids[:4]] == [True, False, False, True])


async def test_a_refresh_while_a_call_runs_lists_anew_and_leaves_the_call_alone(
    home: Path, workspace: Path, tmp_path: Path
) -> None:
    noted = tmp_path / "calls"
    async with hosting(home, {"s": scripted("slow", str(tmp_path / "pids"), str(noted))}) as host:
        tool = await tool_of(host, workspace)
        calling = asyncio.create_task(success_of(tool, tool_context(workspace)))
        await eventually_async(noted.exists)
        (status,) = await host.refresh(ToolScope(workspace))
        assert status.state is ServerState.CONNECTED
        assert len((tmp_path / "pids").read_text().split()) == 1
        assert not calling.done()
        calling.cancel()
        await asyncio.wait({calling})
        await host.refresh(ToolScope(workspace))
        assert len((tmp_path / "pids").read_text().split()) == 2
