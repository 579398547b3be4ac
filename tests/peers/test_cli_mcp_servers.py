"""The commands ``isthmus mcp list``, ``doctor``, ``login`` and ``logout`` with real servers.

They run as programs only where that matters. A program imports the SDK, which takes longer than most of the tested
work; the other commands run in this process.
"""

import asyncio
import functools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from isthmus.mcp_host.catalogue.manifests import users_manifests
from support.hostile_http_mcp_server import hostile_http
from support.isthmus_program import ISTHMUS, InProcess, isthmus, process_ends
from support.loaded_program import LoadedProgram
from support.mcp_hosting import SCRIPTED, SUPPORT, node_server, scripted, write_servers
from support.oauth_mcp_server import oauth_mcp_server
from support.plain_http import plain_client
from support.ports import free_port
from support.vscode_companion import vscode_companion
from support.waiting import eventually, eventually_async

LISTENS = "print('Server listening on http://0.0.0.0:8000/mcp', flush=True); import sys; sys.stdin.read()"
"""A program that serves HTTP and prints that on its standard output."""


@pytest.fixture(autouse=True)
def home() -> Path:
    return Path.home()


@pytest.fixture
def mcp(isthmus_here: InProcess) -> InProcess:
    """Return a function that runs a command of ``isthmus mcp`` in this process."""
    return functools.partial(isthmus_here, "mcp")


@contextmanager
def http_server() -> Generator[str]:
    """Start an MCP server with one tool, and yield its URL."""
    port = free_port()
    command = [sys.executable, str(SUPPORT / "http_mcp_server.py"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:

            def listens() -> bool:
                with socket.socket() as connection:
                    return connection.connect_ex(("127.0.0.1", port)) == 0

            eventually(listens, 60, what="the server listens")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def pids_in(file: Path) -> list[int]:
    return [int(line) for line in file.read_text("utf-8").split()] if file.exists() else []


@contextmanager
def most_at_once(pids: Path) -> Generator[list[int]]:
    """Yield a list whose last item is the largest number of processes in a file of ids that ran at the same time."""
    most, is_over = [0], threading.Event()

    def watch() -> None:
        while not is_over.wait(0.05):
            most.append(max(most[-1], sum(psutil.pid_exists(pid) for pid in pids_in(pids))))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield most
    finally:
        is_over.set()
        watching.join()


@pytest.mark.requirement("MCP-176", "MCP-177", "MCP-178", "MCP-179")
def test_the_list_has_a_line_for_each_server_in_the_documents_form(home: Path, workspace: Path) -> None:
    with http_server() as url:
        write_servers(
            home,
            {
                "stdio-server": scripted("plain"),
                "http-server": {"httpUrl": url, "headers": {"Authorization": "Bearer hunter22"}},
                "sse-server": {"url": "http://127.0.0.1:1/sse?key=hunter22", "type": "sse"},
                "dead": scripted("dies"),
            },
        )
        listed = isthmus("mcp", "list", folder=workspace)
    assert listed.returncode == 0, listed.stderr
    command = f"{sys.executable} -S {SCRIPTED}"
    assert listed.stdout.splitlines() == [
        f"✓ stdio-server: command: {command} plain (stdio) - Connected",
        f"✓ http-server: {url} (http) - Connected",
        "✗ sse-server: http://127.0.0.1:1/sse?key=*** (sse) - Disconnected",
        "    Connection refused (http://127.0.0.1:1/sse)",
        f"✗ dead: command: {command} dies (stdio) - Disconnected",
        "    it ended with exit code 3 before it answered initialize; its last output: ImportError: no module named "
        "nothing",
    ]


def test_the_list_says_why_a_server_cannot_be_used_and_where_it_is_configured(
    home: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(home, {"off": {"command": "x"}, "wrong": {"args": []}})
    shared = {"shared": {"command": "y"}, "lie\n✓ all: is well\x1b[2J": {"command": "z\n✓ z"}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": shared}), "utf-8")
    (workspace / ".gemini").mkdir()
    (workspace / ".gemini" / "settings.json").write_text("{", "utf-8")
    assert loaded_isthmus.run("mcp", "disable", "off", folder=workspace).returncode == 0
    listed = loaded_isthmus.run("mcp", "list", "--no-connect", folder=workspace)
    assert listed.returncode == 0
    assert "○ off: command: x (stdio) - Disabled\n    it is switched off; isthmus mcp enable off" in listed.stdout
    assert "✗ wrong: - Disconnected\n" in listed.stdout
    assert "expected one of command (a program), url" in listed.stdout
    assert "○ shared [.mcp.json]: command: y (stdio) - Not trusted\n" in listed.stdout
    assert listed.stdout.count(f"isthmus trust {workspace}") == 1, "what counts for several is said once"
    assert "○ lie␊✓ all: is well␛[2J [.mcp.json]: command: 'z␊✓ z' (stdio) - Not trusted\n" in listed.stdout
    assert f"Problem: {workspace}/.gemini/settings.json, line 1, column 2" in listed.stderr
    as_json = json.loads(loaded_isthmus.run("mcp", "list", "--no-connect", "--json", folder=workspace).stdout)
    assert [(row["name"], row["status"]) for row in as_json["servers"]] == [
        ("off", "disabled"),
        ("wrong", "disconnected"),
        ("shared", "not trusted"),
        ("lie\n✓ all: is well\x1b[2J", "not trusted"),
    ]
    assert as_json["servers"][2]["file"] == str(workspace / ".mcp.json")
    assert len(as_json["problems"]) == 1


def test_servers_are_tried_at_the_same_time(home: Path, workspace: Path, mcp: InProcess) -> None:
    pids = workspace / "pids"
    servers = {f"hangs-{number}": scripted("hangs", str(pids), timeout=1500) for number in range(8)}
    write_servers(home, {**servers, "works": scripted("plain")})
    with most_at_once(pids) as most:
        status, out, _ = mcp("list", "--json")
    assert status == 0
    assert most[-1] > 1
    rows = json.loads(out)["servers"]
    assert [row["status"] for row in rows] == ["disconnected"] * 8 + ["connected"]
    assert rows[0]["details"] == ["no answer to initialize: none came within 1.5 s"]
    assert rows[8]["tools"] == 1


def test_servers_that_are_slow_are_named_while_they_are_waited_for(home: Path, mcp: InProcess) -> None:
    write_servers(home, {f"hangs-{number}": scripted("hangs", timeout=4500) for number in range(2)})
    status, _, err = mcp("list", "--json")
    assert status == 0
    assert "Waiting for hangs-0, hangs-1" in err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_however_the_list_ends_nothing_of_the_servers_is_left(
    number: signal.Signals, home: Path, workspace: Path
) -> None:
    pids = workspace / "pids"
    write_servers(home, {"hangs": scripted("hangs", str(pids)), "stays": scripted("ignores-end", str(pids))})
    with subprocess.Popen(
        [*ISTHMUS, "mcp", "list", "--timeout", "60000"],
        cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as listing:  # fmt: skip
        eventually(lambda: len(pids_in(pids)) == 2, 60)
        listing.send_signal(number)
        _, err = listing.communicate(timeout=60)
    assert listing.returncode == (130 if number is signal.SIGINT else -number)
    assert b"Traceback" not in err
    for pid in pids_in(pids):
        process_ends(pid)


@pytest.mark.anyio
async def test_an_editor_that_trusts_the_folder_is_believed_as_in_a_session(
    home: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(workspace, {"theirs": scripted("plain")})

    async def listed(*options: str) -> str:
        return (await asyncio.to_thread(loaded_isthmus.run, "mcp", "list", *options, folder=workspace)).stdout

    assert "○ theirs: " in await listed()
    async with vscode_companion(as_json=True) as window:
        window.discovery(workspace, ideInfo={"name": "vscode", "displayName": "VS Code"})
        window.context = {"workspaceState": {"openFiles": [], "isTrusted": True}}

        async def is_believed() -> bool:
            # On a busy machine the command may continue before the editor has answered.
            return "✓ theirs: " in await listed()

        await eventually_async(is_believed, 60)
        assert "○ theirs: " in await listed("--no-connect")


def test_nothing_is_left_when_the_list_ends_by_itself(home: Path, workspace: Path) -> None:
    pids = workspace / "pids"
    write_servers(home, {"stays": scripted("ignores-end", str(pids)), "parent": scripted("grandchild", str(pids))})
    assert isthmus("mcp", "list", folder=workspace).returncode == 0
    assert len(pids_in(pids)) == 2
    for pid in pids_in(pids):
        process_ends(pid)


@pytest.mark.requirement("MCP-020", "MCP-023", "MCP-028")
@pytest.mark.parametrize("scope", ["project", "user"])
def test_a_program_gets_its_arguments_and_starts_in_its_own_folder(
    scope: str, home: Path, workspace: Path, mcp: InProcess
) -> None:
    (workspace / ".gemini").mkdir()
    (workspace / "servers").mkdir()
    program = workspace / "servers" / "serve me"
    program.write_text(
        f"#!/bin/sh\npwd > here\nprintf '%s\\n' \"$@\" > given\nexec {sys.executable} -S {SCRIPTED} plain\n", "utf-8"
    )
    program.chmod(0o755)
    entry = {"command": "./serve me", "args": ["--port", "8080", "two words", ""], "cwd": "./servers"}
    write_servers(workspace if scope == "project" else home, {"own": entry})
    (home / ".gemini").mkdir(exist_ok=True)
    (home / ".gemini" / "trustedFolders.json").write_text(json.dumps({str(workspace): "TRUST_FOLDER"}), "utf-8")
    _, listed, _ = mcp("list")
    assert "✓ own: " in listed
    assert (workspace / "servers" / "here").read_text("utf-8") == f"{workspace}/servers\n"
    assert (workspace / "servers" / "given").read_text("utf-8") == "--port\n8080\ntwo words\n\n"


# --- doctor ----------------------------------------------------------------------------------------------------------


def test_the_doctor_shows_steps_messages_and_what_a_working_server_offers(
    home: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(home, {"good": scripted("bad-entries", env={"API_TOKEN": "hunter22"})})
    result = loaded_isthmus.run("mcp", "doctor", "good", folder=workspace)
    said = result.stdout
    assert (result.returncode, result.stderr) == (0, ""), said
    assert re.search(r"Steps\n  start the program +\d+\.\d{3} s\n  initialize +\d+\.\d{3} s\n  tools/list +\d", said)
    assert "Server: bad-entries 1\n  Protocol: 2025-06-18\n  Capabilities: tools (listChanged)\n" in said
    assert re.search(r"Offers: \d+ tools?, 0 prompts, 0 resources\n  Its tools take about [\d,]+ tokens", said)
    assert "  Left out: " in said
    assert re.search(r" \d+\.\d{3} s → initialize #1, \d+ B\n +\{\"jsonrpc\"", said)
    assert re.search(r"s ← answer to initialize #1, \d+ B\n", said)
    assert "Environment: API_TOKEN=***" in said
    assert "hunter22" not in said
    assert said.endswith("Result: it works.\n")


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ({"command": "no-such-program", "args": []}, ["start the program              no answer", "is installed"]),
        (
            scripted("dies"),
            [
                "Its output\n  ImportError: no module named nothing",
                "It ended with exit code 3.",
                "Run the command by hand",
            ],
        ),
        (
            scripted("hangs", timeout=1000),
            ["initialize                     no answer", "It runs but sends nothing.", "none came within 1 s"],
        ),
        (
            {"command": sys.executable, "args": ["-c", LISTENS], "timeout": 1500},
            ["it seems to listen at http://localhost:8000/mcp: start it", "It runs, but seems to serve HTTP at http:"],
        ),
        (scripted("hangs-at-list", timeout=2000), ["tools/list                     no answer", "runs and answers"]),
        ({"httpUrl": "http://127.0.0.1:1/mcp"}, ["Connection refused", "Check that a server speaks MCP"]),
        ({"args": []}, ["Result: it is not used (disconnected)", "expected one of command"]),
    ],
)
def test_the_doctor_says_where_a_server_fails_and_what_to_do(
    server: dict[str, Any], expected: list[str], home: Path, mcp: InProcess
) -> None:
    write_servers(home, {"bad": server})
    status, said, _ = mcp("doctor", "bad")
    assert status == 1
    for text in expected:
        assert text in said


def test_a_real_server_that_is_started_for_http_by_mistake_is_recognised(home: Path, mcp: InProcess) -> None:
    port = free_port()
    server = node_server("server-everything", "streamableHttp")
    write_servers(home, {"everything": {**server, "env": {"PORT": str(port)}, "timeout": 5000}})
    status, said, _ = mcp("list")
    assert status == 0
    assert f"it seems to listen at http://localhost:{port}: start it yourself and give its address as httpUrl" in said


def test_the_doctor_says_that_a_url_refuses_both_ways_in_which_mcp_begins(home: Path, mcp: InProcess) -> None:
    with hostile_http("refused-hello") as (url, _):
        write_servers(home, {"bad": {"httpUrl": url}})
        status, said, _ = mcp("doctor", "bad")
    assert status == 1
    assert "answered initialize with HTTP 400 (this server wants flowers)" in said
    assert "The server answers, but refuses both ways to begin MCP: initialize, and server/discover" in said


def test_the_doctor_without_a_name_says_of_all_of_them_in_short(home: Path, mcp: InProcess) -> None:
    write_servers(home, {"good": scripted("plain")})
    line = f"✓ good: command: {sys.executable} -S {SCRIPTED} plain (stdio) - Connected\n    1 tool\n"
    assert mcp("doctor") == (0, line, "")
    write_servers(home, {"good": scripted("plain"), "bad": scripted("dies")})
    status, said, _ = mcp("doctor")
    assert status == 1
    assert "✗ bad: " in said
    status, said, problem = mcp("doctor", "god")
    assert (status, said) == (1, "")
    assert "no MCP server is named 'god'" in problem


# --- login -----------------------------------------------------------------------------------------------------------


def test_a_login_to_a_server_that_is_not_there_says_what_it_met(
    home: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(home, {"gone": {"httpUrl": "http://127.0.0.1:1/mcp?key=secret"}})
    ended = loaded_isthmus.run("mcp", "login", "gone", folder=workspace)
    said = "isthmus: the login to gone failed: http://127.0.0.1:1/mcp cannot be reached: Connection refused\n"
    assert (ended.returncode, ended.stderr) == (1, said)


@asynccontextmanager
async def login_to_notes(workspace: Path, browser: httpx2.AsyncClient) -> AsyncGenerator[tuple[Process, str]]:
    """Run ``isthmus mcp login notes``, which waits; yield it with the last address of its user's browser."""
    login = await asyncio.create_subprocess_exec(
        *ISTHMUS, "mcp", "login", "notes",
        cwd=workspace, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert login.stdout is not None
    said = ""
    async with asyncio.timeout(60):
        while (page := re.search(r"^http\S+/authorize\?\S+$", said, re.MULTILINE)) is None:
            line = await login.stdout.readline()
            assert line, said
            said += line.decode()
        answer = await browser.get(page[0])
        yield login, answer.headers["location"]
        said = (await login.stdout.read()).decode()
        assert await login.wait() == 0, said
    assert "notes is connected" in said


@pytest.mark.anyio
async def test_a_user_logs_in_at_a_terminal_and_out_again(
    home: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async def listed() -> str:
        return (await asyncio.to_thread(loaded_isthmus.run, "mcp", "list", folder=workspace)).stdout

    async with oauth_mcp_server() as server, plain_client() as browser:
        write_servers(home, {"notes": {"httpUrl": server.url}})
        wanted = f"! notes: {server.url} (http) - Needs login\n    it requires a login: isthmus mcp login notes"
        assert wanted in await listed()
        async with login_to_notes(workspace, browser) as (_, address):
            assert (await browser.get(address)).status_code == 200
        assert f"✓ notes: {server.url} (http) - Connected" in await listed()
        out = await asyncio.to_thread(loaded_isthmus.run, "mcp", "logout", "notes", folder=workspace)
        assert (out.returncode, out.stdout.startswith("Logged out of notes")) == (0, True), out.stderr

        async def asks_again() -> bool:
            return "Needs login" in await listed()

        await eventually_async(asks_again, 60)


@pytest.mark.anyio
async def test_a_user_without_a_browser_here_pastes_the_address_that_theirs_was_sent_to(
    home: Path, workspace: Path
) -> None:
    async with oauth_mcp_server() as server, plain_client() as browser:
        write_servers(home, {"notes": {"httpUrl": server.url}})
        async with login_to_notes(workspace, browser) as (login, address):
            assert login.stdin is not None
            login.stdin.write(f"{address.partition('state=')[0]}state=another\n{address}\n".encode())
    (kept,) = users_manifests().glob("*.json")  # the next run has the tools at once
    assert json.loads(kept.read_text("utf-8"))["manifest"].get("is_held", False) is False


def test_a_program_has_no_login_and_that_is_said(home: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    write_servers(home, {"program": scripted("plain")})
    for command in ("login", "logout"):
        result = loaded_isthmus.run("mcp", command, "program", folder=workspace)
        assert result.returncode == 1
        assert "is a program here; there is nothing to log in to" in result.stderr
