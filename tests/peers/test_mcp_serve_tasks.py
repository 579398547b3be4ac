"""Tasks of ``isthmus mcp serve`` that take longer than a call, or than the client and the server that began them.

The judges are the official clients for Python and TypeScript, as programs that can be killed.
"""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.programs.mcp.progress import BEAT_SECONDS
from isthmus.programs.mcp.tasks import MAXIMUM_WAIT_SECONDS
from support.extended import first_of
from support.isthmus_program import ISTHMUS, isthmus, process_ends
from support.loaded_program import LoadedProgram, shared_program
from support.mcp_client_program import CLIENTS, McpClient, mcp_client
from support.process_families import commands_below, kill_below
from support.session_terminal import PROMPT, Sessions
from support.waiting import eventually

SDK_SECONDS = 60
"""Time after which the clients of the TypeScript SDK give a call up, unless they are told otherwise."""
SCRIPT = """
name: tasks
scenarios:
  - prompt: 'wait'
    replies:
      - text: 'I wait for it. '
        call: {name: run_shell_command, arguments: {command: "echo x >>began; until [ -e go ]; do sleep 0.05; done"}}
      - text: done
  - prompt: 'sleep'
    replies:
      - call: {name: run_shell_command, arguments: {command: "touch sleeps; sleep 600"}}
      - text: done
  - prompt: 'write'
    replies:
      - call: {name: write_file, arguments: {file_path: made.txt, content: "one"}}
      - text: written
"""
RUNS = "run_shell_command: echo x >>began; until [ -e go ]; do sleep 0.05; done"


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    return Sessions(tmp_path, SCRIPT, workspace, loaded_isthmus)


def served(sessions: Sessions, *options: str) -> tuple[str, ...]:
    """Return the folder of the server, and its command."""
    return str(sessions.workspace), *ISTHMUS, "mcp", "serve", *sessions.options, *options


def call(name: str, *, stay: bool = False, options: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "options": options or {}, "stay": stay}


def task_of(texts: list[str]) -> str:
    """Return the id of the task in a result."""
    return next(text.removeprefix("Task: ") for text in texts if text.startswith("Task: "))


def tasks(sessions: Sessions) -> list[dict[str, Any]]:
    listed = isthmus("tasks", "list", "--json", "--data-dir", str(sessions.data), folder=sessions.workspace)
    return json.loads(listed.stdout)


def server_of(client: McpClient) -> psutil.Process:
    """Return the process that runs the tasks of a client's server."""
    below = commands_below(psutil.Process(client.process.pid))
    return next(process for process, command in below if "--behind" in command)


def has_begun(sessions: Sessions) -> bool:
    return (sessions.workspace / "began").exists()


def test_clients_hear_of_the_work_within_their_limits() -> None:
    assert BEAT_SECONDS == 10 < SDK_SECONDS
    assert MAXIMUM_WAIT_SECONDS < SDK_SECONDS


def test_a_call_that_outlasts_its_limit_is_kept_by_what_it_is_told(sessions: Sessions) -> None:
    limits = {"timeout": 3000, "resetTimeoutOnProgress": True}
    program = served(sessions, "-y", "--beat-seconds", "0.25")
    with mcp_client("typescript", [call("run_task", prompt="wait", options=limits)], *program) as client:
        while client.said() != {"progress": RUNS}:  # as long as the call has not begun
            pass
        beats = [client.said() for _ in range(19)]
        (sessions.workspace / "go").touch()
        texts, _ = client.result()
    assert beats == [{"progress": RUNS}] * 19
    assert texts[0] == "done"


@pytest.mark.parametrize("kind", first_of(CLIENTS))
def test_a_task_ends_right_for_a_client_whose_limit_is_shorter(sessions: Sessions, kind: str) -> None:
    options = {"timeout": 5000} if kind == "typescript" else {"read_timeout_seconds": 5}
    with mcp_client(kind, [call("start_task", prompt="wait", options=options)], *served(sessions, "-y")) as client:
        texts, _ = client.result()
        assert client.said() == {"closed": True}  # a client that ends in order, and does not wait for the server
    eventually(lambda: has_begun(sessions))
    task_id = task_of(texts)
    looks = [call("get_task", task_id=task_id, wait_seconds=seconds, options=options) for seconds in (0, 1)]
    with mcp_client(kind, [*looks, call("get_task", task_id=task_id)], *served(sessions, "-y")) as client:
        for _ in looks:
            texts, _ = client.result()
            assert texts[0].strip() == "I wait for it."
        assert texts[1:] == [f"State: working ({RUNS})", f"Task: {task_id}", texts[-1]]
        (sessions.workspace / "go").touch()
        texts, _ = client.result()
    assert texts[:2] == ["done", "State: completed"]
    assert (sessions.workspace / "began").read_text() == "x\n"


@pytest.mark.extended
@pytest.mark.parametrize("kind", first_of(CLIENTS))
def test_a_started_task_goes_on_when_its_client_is_killed(sessions: Sessions, kind: str) -> None:
    calls = [call("start_task", prompt="wait", stay=True)]
    with mcp_client(kind, calls, *served(sessions, "-y")) as client:
        task_id = task_of(client.result()[0])
        eventually(lambda: has_begun(sessions))
        server = server_of(client)
        client.kill()
    calls = [call("get_task", task_id=task_id, wait_seconds=0), call("get_task", task_id=task_id)]
    with mcp_client("python", calls, *served(sessions)) as client:
        assert f"State: working ({RUNS})" in client.result()[0]
        (sessions.workspace / "go").touch()
        assert client.result()[0][:2] == ["done", "State: completed"]
    assert (sessions.workspace / "began").read_text() == "x\n", "the command was broken off"
    process_ends(server.pid)


def goes_on_in_a_client(sessions: Sessions, task_id: str) -> None:
    with mcp_client("python", [call("get_task", task_id=task_id)], *served(sessions)) as client:
        assert client.result()[0][:2] == ["done", "State: completed"]


def goes_on_in_the_terminal(sessions: Sessions, task_id: str) -> None:
    with sessions.terminal("--continue") as terminal:
        terminal.wait_for("I wait for it.").wait_for("done").wait_for(PROMPT)


def goes_on_with_the_page(sessions: Sessions, task_id: str) -> None:
    options = (*sessions.options, "--no-open")
    with shared_program().piped("web", *options, folder=sessions.workspace):
        eventually(lambda: tasks(sessions)[0]["state"] == "completed")


@pytest.mark.parametrize("tool", first_of(["start_task", "run_task"]))
@pytest.mark.parametrize("goes_on", first_of([goes_on_in_a_client, goes_on_in_the_terminal, goes_on_with_the_page]))
def test_a_task_goes_on_when_its_server_is_killed(
    sessions: Sessions, tool: str, goes_on: Callable[[Sessions, str], None]
) -> None:
    with mcp_client("python", [call(tool, prompt="wait", stay=True)], *served(sessions, "-y")) as client:
        eventually(lambda: has_begun(sessions))
        kill_below(psutil.Process(client.process.pid))
    (task,) = tasks(sessions)
    assert task["state"] == "working"
    goes_on(sessions, task["id"])
    (task,) = tasks(sessions)
    assert task["state"] == "completed"


def test_a_call_stops_when_its_client_is_killed_and_is_not_lost(sessions: Sessions) -> None:
    with mcp_client("python", [call("run_task", prompt="wait")], *served(sessions, "-y")) as client:
        eventually(lambda: has_begun(sessions))
        server = server_of(client)
        client.kill()
    process_ends(server.pid)
    (task,) = tasks(sessions)
    assert task["state"] == "working"
    goes_on_in_a_client(sessions, task["id"])


def test_a_call_stops_beside_a_started_task_which_goes_on(sessions: Sessions) -> None:
    calls = [call("start_task", prompt="wait"), call("run_task", prompt="sleep")]
    with mcp_client("python", calls, *served(sessions, "-y")) as client:
        started = task_of(client.result()[0])
        eventually(lambda: has_begun(sessions) and (sessions.workspace / "sleeps").exists())
        server = server_of(client)
        client.kill()
    (sessions.workspace / "go").touch()
    process_ends(server.pid)
    states = {task["id"]: task["state"] for task in tasks(sessions)}
    assert states.pop(started) == "completed"
    assert list(states.values()) == ["working"]
    goes_on_in_a_client(sessions, next(iter(states)))


def test_the_end_of_the_program_is_that_of_the_part_that_serves(sessions: Sessions) -> None:
    ended = isthmus("mcp", "serve", "-m", "nonsense:model", folder=sessions.workspace)
    assert ended.returncode == 42
    assert "nonsense" in ended.stderr
    assert isthmus("mcp", "serve", *sessions.options, folder=sessions.workspace).returncode == 0
    with shared_program().piped("mcp", "serve", *sessions.options, folder=sessions.workspace) as process:
        pass
    assert process.wait(30) in (0, -signal.SIGTERM)


@pytest.mark.parametrize("number", first_of([signal.SIGKILL, signal.SIGTERM, signal.SIGHUP]))
def test_the_part_that_serves_ends_with_the_program(sessions: Sessions, number: signal.Signals) -> None:
    with mcp_client("python", [call("get_task", task_id="none", stay=True)], *served(sessions)) as client:
        assert client.said()["isError"]
        (program,) = psutil.Process(client.process.pid).children()
        server = server_of(client)
        program.send_signal(number)
        process_ends(server.pid)
        process_ends(program.pid)
