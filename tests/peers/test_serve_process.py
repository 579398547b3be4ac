"""The command ``isthmus serve`` as a process of its own: the data that survives its death, and answers to bad input."""

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, TaskSnapshot
from isthmus.development_tool import ModifiedFileDetails, ToolCallConfirmation
from isthmus.events import StateChange, TaskState, ToolCallUpdate
from support.gemini_wire import GeminiWire
from support.isthmus_program import ISTHMUS, isthmus, read_line
from support.loaded_program import LoadedProgram
from support.scripted_wire import Call, Reply, Say
from support.turns import all_of
from support.waiting import eventually_async

if TYPE_CHECKING:
    from collections.abc import Generator

pytestmark = pytest.mark.anyio

READY = "A2A server ready at http://127.0.0.1:"


@contextmanager
def serving(
    folder: Path, *options: str, environment: dict[str, str] | None = None
) -> "Generator[tuple[subprocess.Popen[str], str]]":
    """Start a server on a free port; yield the process and its URL. Kill it at the end."""
    arguments = ["serve", "--port", "0", "--token-file", str(folder / "token"), "--data-dir", str(folder / "data")]
    with (folder / "server.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            [*ISTHMUS, *arguments, "--no-ide", *options],
            cwd=folder, env={**os.environ, **(environment or {})}, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=log,
        )  # fmt: skip
    try:
        line = read_line(process)
        assert line.startswith(READY), line + (folder / "server.log").read_text(encoding="utf-8")
        yield process, line.removeprefix("A2A server ready at ")
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


async def client_of(url: str, folder: Path) -> RemoteAgent:
    return await RemoteAgent.connect(url, (folder / "token").read_text(encoding="utf-8").strip())


def gemini(wire: GeminiWire) -> dict[str, str]:
    return {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}


async def waiting_edit(url: str, folder: Path, workspace: Path) -> TaskSnapshot:
    agent = await client_of(url, folder)
    turn = await agent.prompt(PromptMessage("translate", settings={"workspace_path": str(workspace)}))
    seen = await all_of(turn)
    await agent.aclose()
    assert seen[-1].event == StateChange(TaskState.INPUT_REQUIRED)
    return turn.snapshot


async def test_a_waiting_edit_survives_kill_9_and_a_client_without_a_stream_answers_it(
    tmp_path: Path, workspace: Path
) -> None:
    target = workspace / "a.txt"
    target.write_text("one\ntwo\n", encoding="utf-8")
    edit = Call("replace", {"file_path": str(target), "old_string": "two", "new_string": "zwei"})
    with GeminiWire([Reply.of(Say("I will"), edit), Reply.of(Say("Done."))]) as wire:
        options = ("-m", "gemini:test", "--workspace", str(workspace))
        with serving(tmp_path, *options, environment=gemini(wire)) as (process, url):
            task = await waiting_edit(url, tmp_path, workspace)
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        assert target.read_text(encoding="utf-8") == "one\ntwo\n"
        with serving(tmp_path, *options, environment=gemini(wire)) as (_, url):
            agent = await client_of(url, tmp_path)
            (call,) = (await agent.get(task.task_id)).pending
            answer = ToolCallConfirmation(call.tool_call_id, "proceed_once", ModifiedFileDetails("one\nzwo\n"))
            seen = await all_of(await agent.answer(task.task_id, [answer], answered_by="another client"))
            history = (await agent.get(task.task_id)).history
            await agent.aclose()
    assert seen[-1].event == StateChange(TaskState.COMPLETED)
    writes = [item.event for item in seen if isinstance(item.event, ToolCallUpdate)]
    assert [event.tool_call.status.name for event in writes] == ["EXECUTING", "SUCCEEDED"]
    assert target.read_text(encoding="utf-8") == "one\nzwo\n"
    assert [message.text for message in history][-1] == "Done."
    first_after_restart = json.dumps(wire.model_requests[1].json["contents"])
    for said in ("translate", "I will", "replace", "User modified", "zwo"):
        assert said in first_after_restart


async def test_a_running_command_is_reported_after_kill_9_and_not_run_again(tmp_path: Path, workspace: Path) -> None:
    trace = workspace / "trace"
    command = f"echo ran >> {trace}; sleep 60"
    with GeminiWire([Reply.of(Call("run_shell_command", {"command": command})), Reply.of(Say("I see."))]) as wire:
        options = ("-m", "gemini:test", "--workspace", str(workspace), "--approval-mode", "yolo")
        with serving(tmp_path, *options, environment=gemini(wire)) as (process, url):
            agent = await client_of(url, tmp_path)
            settings = {"workspace_path": str(workspace)}
            turn = await agent.prompt(PromptMessage("run it", settings=settings))
            async for delivery in turn.deliveries:
                if isinstance(delivery.event, ToolCallUpdate) and delivery.event.tool_call.status.name == "EXECUTING":
                    break
            await eventually_async(lambda: trace.exists() and trace.read_text(encoding="utf-8") == "ran\n")
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            await agent.aclose()
        with serving(tmp_path, *options, environment=gemini(wire)) as (_, url):
            agent = await client_of(url, tmp_path)
            seen = await all_of(await agent.follow(turn.task_id, 1))
            await agent.aclose()
    assert seen[-1].event == StateChange(TaskState.COMPLETED)
    last = [item.event.tool_call for item in seen if isinstance(item.event, ToolCallUpdate)][-1]
    assert last.error is not None
    assert last.error.type == "interrupted"
    assert trace.read_text(encoding="utf-8") == "ran\n"
    assert "outcome is not known" in json.dumps(wire.model_requests[1].json["contents"])


async def test_a_command_does_not_see_the_agents_own_keys(tmp_path: Path, workspace: Path) -> None:
    command = Call("run_shell_command", {"command": "env > seen"})
    with GeminiWire([Reply.of(command), Reply.of(Say("Done."))]) as wire:
        options = ("-m", "gemini:test", "--workspace", str(workspace), "--approval-mode", "yolo")
        environment = {**gemini(wire), "OPENAI_API_KEY": "secret-1", "THE_USERS_OWN": "kept"}
        with serving(tmp_path, *options, environment=environment) as (_, url):
            agent = await client_of(url, tmp_path)
            await all_of(await agent.prompt(PromptMessage("run it", settings={"workspace_path": str(workspace)})))
            await agent.aclose()
    seen = (workspace / "seen").read_text(encoding="utf-8")
    assert "THE_USERS_OWN=kept" in seen
    assert "test-key" not in seen
    assert "secret-1" not in seen


async def test_after_sigterm_the_server_is_gone_with_status_0_and_its_questions_wait(
    tmp_path: Path, workspace: Path
) -> None:
    write = Call("write_file", {"file_path": "a.txt", "content": "x"})
    with GeminiWire([Reply.of(write)]) as wire:
        options = ("-m", "gemini:test", "--workspace", str(workspace))
        with serving(tmp_path, *options, environment=gemini(wire)) as (process, url):
            task = await waiting_edit(url, tmp_path, workspace)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        with serving(tmp_path, *options, environment=gemini(wire)) as (_, url):
            agent = await client_of(url, tmp_path)
            assert (await agent.get(task.task_id)).state is TaskState.INPUT_REQUIRED
            await agent.aclose()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_properly_from_the_moment_it_says_that_it_is_ready(
    tmp_path: Path, number: signal.Signals
) -> None:
    with serving(tmp_path, "-m", "demo") as (process, _):
        process.send_signal(number)
        assert process.wait(60) == 0


def test_the_token_file_and_the_data_folder_are_for_their_owner_alone(tmp_path: Path) -> None:
    with serving(tmp_path, "-m", "demo"):
        assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "data" / "journal.sqlite").stat().st_mode) == 0o600


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = isthmus("serve", "--port", str(port), "--data-dir", str(tmp_path / "d"), "-m", "demo", folder=tmp_path)
    assert ended.returncode == 1
    assert f"port {port}" in ended.stderr
    assert "in use" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("serve", "-m", "nonsense"), 42, "no model is called 'nonsense'"),
        (("serve", "-m", "scripted:/nowhere.yaml"), 42, "/nowhere.yaml"),
        (("serve", "--workspace", "/nowhere"), 42, "/nowhere"),
        (("serve", "--port", "99999"), 42, "99999"),
        (("serve", "--host", "no.such.host.invalid", "-m", "demo"), 1, "no.such.host.invalid"),
        (("-p", "hi", "--approval-mode", "sometimes"), 42, "sometimes"),
        (("-p", "hi", "-m", "gemini:x"), 42, "GEMINI_API_KEY"),
        (("-p", ""), 42, "prompt is empty"),
        (("companoin",), 42, "companoin"),
    ],
)
def test_bad_arguments_get_a_clear_error(
    tmp_path: Path, arguments: tuple[str, ...], status: int, message: str, loaded_isthmus: LoadedProgram
) -> None:
    ended = loaded_isthmus.run(*arguments, folder=tmp_path, text="")
    assert message in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.returncode == status


def test_a_data_folder_without_permission_is_named_and_left_alone(
    tmp_path: Path, loaded_isthmus: LoadedProgram
) -> None:
    blocker = tmp_path / "data"
    blocker.write_text("not a folder", encoding="utf-8")
    ended = loaded_isthmus.run("-p", "hi", "-m", "demo", "--data-dir", str(blocker / "d"), folder=tmp_path, text="")
    assert ended.returncode == 1
    assert str(blocker) in ended.stderr
    assert "Traceback" not in ended.stderr
    assert blocker.read_text(encoding="utf-8") == "not a folder"


def test_a_settings_file_with_a_syntax_error_is_named_with_line_and_column(
    tmp_path: Path, loaded_isthmus: LoadedProgram
) -> None:
    (tmp_path / ".gemini").mkdir()
    settings = tmp_path / ".gemini" / "settings.json"
    settings.write_text('{\n  "model": {"name": "x"}\n  "ide": {}\n}', encoding="utf-8")
    ended = loaded_isthmus.run("-p", "hi", folder=tmp_path, text="")
    assert ended.returncode == 42
    assert "settings.json, line 3, column 3" in ended.stderr


def test_a_journal_of_a_newer_version_is_left_untouched(tmp_path: Path, loaded_isthmus: LoadedProgram) -> None:
    path = tmp_path / "data" / "journal.sqlite"
    loaded_isthmus.run("-p", "hi", "-m", "demo", "--data-dir", str(path.parent), folder=tmp_path, text="")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    before = path.read_bytes()
    ended = loaded_isthmus.run("-p", "hi", "-m", "demo", "--data-dir", str(path.parent), folder=tmp_path, text="")
    assert ended.returncode == 1
    assert "newer Isthmus" in ended.stderr
    assert path.read_bytes() == before


def test_a_headless_run_prints_the_answer_and_one_json_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GeminiWire([Reply.of(Say("Forty", "-two."))] * 2) as wire:
        for name, value in gemini(wire).items():
            monkeypatch.setenv(name, value)
        text = isthmus("-p", "what?", "-m", "gemini:test", "--data-dir", str(tmp_path / "d"), folder=tmp_path, text="")
        answer: dict[str, Any] = json.loads(
            isthmus(
                *("-p", "what?", "-m", "gemini:test", "-o", "json", "--data-dir", str(tmp_path / "d")),
                folder=tmp_path,
                text="",
            ).stdout
        )
    assert (text.returncode, text.stdout) == (0, "Forty-two.\n")
    assert answer["response"] == "Forty-two."
    assert {"session_id", "response", "stats"} <= set(answer)
    assert "error" not in answer
