"""Failures of servers that are over: at most one later run, or turn, is without their tools."""

import contextlib
import json
import sys
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from isthmus.mcp_host.catalogue.manifests import users_manifests
from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.hostile_http_mcp_server import hostile_http
from support.isolation import IsolatedFolders
from support.isthmus_program import InProcess
from support.mcp_hosting import SCRIPTED, SOON_ENDED, scripted, status_when, write_servers
from support.mcp_hosting import hosting_soon_ended as hosting
from support.mcp_http_handler import McpHandler, serving
from support.ports import free_port
from support.sse_mcp_server import sse_server

pytestmark = pytest.mark.anyio


@pytest.fixture
def scope(workspace: Path) -> ToolScope:
    return ToolScope(workspace)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@dataclass
class Faulty:
    """A server that cannot be used until ``mend`` is called."""

    settings: dict[str, Any]
    mend: Callable[[], object]


@contextlib.contextmanager
def slow_start(folder: Path) -> Generator[Faulty]:
    """Let the server wait as during its first download."""
    listed = folder / "listed.json"
    listed.write_text(json.dumps([{"name": "ok", "inputSchema": {"type": "object"}}]))
    hold = folder / "listed.json.hold"
    hold.touch()
    yield Faulty(scripted("listed", str(folder / "pids"), str(listed)), hold.unlink)


@contextlib.contextmanager
def crash(folder: Path) -> Generator[Faulty]:
    program = folder / "server.py"
    program.write_text("raise SystemExit(3)\n")

    def mend() -> None:
        program.unlink()
        program.symlink_to(SCRIPTED)

    yield Faulty({"command": sys.executable, "args": ["-S", str(program), "plain"]}, mend)


@contextlib.contextmanager
def missing_package(folder: Path) -> Generator[Faulty]:
    program = folder / "no-such-program"
    settings = {**scripted("plain"), "command": str(program)}

    def install() -> None:
        program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        program.chmod(0o700)

    yield Faulty(settings, install)


@contextlib.contextmanager
def missing_folder(folder: Path) -> Generator[Faulty]:
    place = folder / "later"
    yield Faulty(scripted("plain", cwd=str(place)), place.mkdir)


@contextlib.contextmanager
def nobody_listens(folder: Path) -> Generator[Faulty]:
    port = free_port()
    with contextlib.ExitStack() as stack:
        settings = {"httpUrl": f"http://127.0.0.1:{port}/mcp"}
        yield Faulty(settings, lambda: stack.enter_context(hostile_http("plain", port)))


@contextlib.contextmanager
def taken_port(folder: Path) -> Generator[Faulty]:
    """Let another service have the port at first."""
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as others:
        origin = others.enter_context(serving(McpHandler))

        def mend() -> None:
            others.close()
            stack.enter_context(hostile_http("plain", urlsplit(origin).port or 0))

        yield Faulty({"url": f"{origin}/mcp"}, mend)


@contextlib.contextmanager
def silent_url(folder: Path) -> Generator[Faulty]:
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as silent:
        url, _ = silent.enter_context(hostile_http("slow-hello"))

        def mend() -> None:
            silent.close()
            stack.enter_context(hostile_http("plain", urlsplit(url).port or 0))

        yield Faulty({"httpUrl": url}, mend)


@contextlib.contextmanager
def no_sse(folder: Path) -> Generator[Faulty]:
    port = free_port()
    with contextlib.ExitStack() as stack:
        settings = {"url": f"http://127.0.0.1:{port}/sse", "type": "sse"}
        yield Faulty(settings, lambda: stack.enter_context(sse_server("plain", port)))


FAILURES = (slow_start, crash, missing_package, missing_folder, nobody_listens, taken_port, silent_url, no_sse)
each_failure = pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.__name__)


async def names_of(host: McpHost, scope: ToolScope) -> list[str]:
    return list((await host.tools(scope)).tools)


@each_failure
async def test_later_runs_have_the_tools_of_a_server_whose_failure_is_over(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path, failure: Any
) -> None:
    with failure(tmp_path) as faulty:
        async with hosting(home, {"s": faulty.settings}, cache=cache, wait_seconds=0.5) as host:
            assert await names_of(host, scope) == []
        faulty.mend()
        for _ in range(2):
            async with hosting(home, {"s": faulty.settings}, cache=cache) as host:
                assert await names_of(host, scope) == ["ok"]


@each_failure
async def test_later_turns_of_an_agent_have_the_tools_of_a_server_whose_failure_is_over(
    home: Path, scope: ToolScope, tmp_path: Path, failure: Any
) -> None:
    timeouts = replace(SOON_ENDED, retry_seconds=0)
    with failure(tmp_path) as faulty:
        settings = {**faulty.settings, "timeout": 1_000}
        async with hosting(home, {"s": settings}, timeouts=timeouts) as host:
            assert await names_of(host, scope) == []
            faulty.mend()
            await names_of(host, scope)
            await status_when(host, scope, "s", ServerState.CONNECTED)
            assert await names_of(host, scope) == ["ok"]


@pytest.mark.parametrize(
    ("wait_seconds", "timeout"), [(0.2, 60_000), (60.0, 200)], ids=["waited for in vain", "failed by itself"]
)
async def test_at_most_one_run_is_without_a_server_that_starts_slowly_after_its_failure(
    home: Path, scope: ToolScope, cache: Path, tmp_path: Path, wait_seconds: float, timeout: int
) -> None:
    timeouts = replace(SOON_ENDED, held_seconds=0.01, report_seconds=0.02)
    with slow_start(tmp_path) as faulty:
        options: dict[str, Any] = {"cache": cache, "timeouts": timeouts}
        servers = {"s": {**faulty.settings, "timeout": timeout}}
        async with hosting(home, servers, wait_seconds=wait_seconds, **options) as host:
            assert await names_of(host, scope) == []
        servers = {"s": faulty.settings}
        async with hosting(home, servers, wait_seconds=wait_seconds, **options) as host:
            assert await names_of(host, scope) == []
            (status,) = await host.servers(scope)
            assert status.problem is not None
            assert f"it was waited for 0.01 s instead of {wait_seconds:g} s, because it could not" in status.problem

        def start(names: Sequence[str], seconds: float) -> None:
            if names:
                faulty.mend()

        async with hosting(home, servers, wait_seconds=60.0, on_wait=start, **options) as host:
            assert await names_of(host, scope) == ["ok"]


def held(folder: Path) -> list[bool]:
    """Return for each stored server whether it could not be used the last time."""
    return [bool(json.loads(file.read_text())["manifest"].get("is_held")) for file in folder.glob("*.json")]


def test_a_run_waits_for_a_server_whose_start_was_slow_once(
    isolated_folders: IsolatedFolders, tmp_path: Path, isthmus_here: InProcess
) -> None:
    with slow_start(tmp_path) as faulty:
        servers = {"s": {**faulty.settings, "timeout": 2_100}}
        write_servers(isolated_folders.home, servers)
        run = ("-p", "hi", "-m", "demo", "--no-ide", "-o", "json")
        _, _, errors = isthmus_here(*run)
        assert "without the tools of these MCP servers: s (no answer to initialize" in errors
        faulty.mend()
        _, out, errors = isthmus_here(*run)
    assert [found["status"] for found in json.loads(out)["mcp_servers"]] == ["connected"]
    assert "without the tools" not in errors


@pytest.mark.parametrize("command", [("list",), ("doctor",), ("doctor", "s")], ids=" ".join)
def test_a_command_that_finds_a_server_well_ends_what_is_remembered_of_its_failure(
    isolated_folders: IsolatedFolders, tmp_path: Path, isthmus_here: InProcess, command: tuple[str, ...]
) -> None:
    with crash(tmp_path) as faulty:
        write_servers(isolated_folders.home, {"s": faulty.settings})
        isthmus_here("-p", "hi", "-m", "demo", "--no-ide")
        assert held(users_manifests()) == [True]
        isthmus_here("mcp", *command)
        assert held(users_manifests()) == [True]
        faulty.mend()
        isthmus_here("mcp", *command)
        assert held(users_manifests()) == [False]
