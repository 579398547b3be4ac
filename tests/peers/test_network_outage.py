"""The program while its provider cannot be reached: a server on this machine that is not there yet, or not any more."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from isthmus.client import OFFLINE, PromptMessage
from isthmus.events import RetryNotice, StateChange, TaskState
from support.gemini_wire import GeminiWire
from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.ports import free_port
from support.scripted_wire import Reply, Say
from support.serve_program import serve_program
from support.session_terminal import PROMPT
from support.waiting import eventually_async
from support.workbench import workbench

OPTIONS = ("-m", "gemini:test", "--no-ide")
ANSWER = Reply.of(Say("Here I am."))
WAITS = "goes on by itself"
UNUSED = "name: unused\nscenarios: [{prompt: '.', replies: [{text: x}]}]\n"
"""A script, which each workbench has."""


def variables(port: int) -> Mapping[str, str]:
    return {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}"}


def test_a_conversation_waits_and_goes_on(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    port = free_port()
    environment = {**os.environ, "TERM": "xterm-256color", **variables(port)}
    with loaded_isthmus.terminal(
        *OPTIONS, "--data-dir", str(tmp_path / "data"), folder=workspace, environment=environment
    ) as terminal:
        terminal.wait_for(PROMPT).press("are you there?\r").wait_for(WAITS)
        terminal.wait_for("offline, goes on by itself")
        began = time.monotonic()
        with GeminiWire([ANSWER], port):
            terminal.wait_for("Here I am.").wait_for(PROMPT)
            assert time.monotonic() - began < 10


def test_esc_ends_the_wait_at_once(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    environment = {**os.environ, "TERM": "xterm-256color", **variables(free_port())}
    with loaded_isthmus.terminal(
        *OPTIONS, "--data-dir", str(tmp_path / "data"), folder=workspace, environment=environment
    ) as terminal:
        terminal.wait_for(PROMPT).press("are you there?\r").wait_for(WAITS)
        began = time.monotonic()
        terminal.press("\x1b").wait_for("cancelled").wait_for(PROMPT)
        assert time.monotonic() - began < 5


def test_a_script_waits_as_long_as_its_option_says(isthmus_here: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(free_port()).items():
        monkeypatch.setenv(name, value)
    for patience, has_waited in (("0", False), ("2s", True)):
        began = time.monotonic()
        status, output, errors = isthmus_here("-p", "hi", *OPTIONS, "--patience", patience)
        assert (status, output) == (1, "")
        assert "cannot be reached" in errors
        assert (WAITS in errors) is has_waited
        assert ("No connection came within 2 s" in errors) is has_waited
        assert not has_waited or time.monotonic() - began >= 2


def test_the_setting_counts_without_the_option(isthmus_here: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables(free_port()).items():
        monkeypatch.setenv(name, value)
    settings = Path.home() / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"isthmus": {"patience": "1s"}}', "utf-8")
    status, _, errors = isthmus_here("-p", "hi", *OPTIONS)
    assert status == 1
    assert "No connection came within 1 s" in errors


def test_a_killed_conversation_goes_on_when_it_is_continued(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    port = free_port()
    environment = {**os.environ, "TERM": "xterm-256color", **variables(port)}
    options = (*OPTIONS, "--data-dir", str(tmp_path / "data"))
    with loaded_isthmus.terminal(*options, folder=workspace, environment=environment) as terminal:
        terminal.wait_for(PROMPT).press("are you there?\r").wait_for(WAITS)
        terminal.signal(signal.SIGKILL)
    with (
        GeminiWire([ANSWER], port) as wire,
        loaded_isthmus.terminal(*options, "-c", folder=workspace, environment=environment) as terminal,
    ):
        terminal.wait_for("Here I am.", 90).wait_for(PROMPT)
        assert len(wire.model_requests) == 1


@pytest.mark.anyio
async def test_a_killed_server_waits_on_when_it_is_started_again(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    port = free_port()
    arguments = ("-m", "gemini:test")

    async def run(*command: str) -> str:
        options = (*command, "--data-dir", str(tmp_path / "data"))
        done = await asyncio.to_thread(loaded_isthmus.run, *options, folder=workspace)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    async def is_shown_as_offline() -> bool:
        return f"working ({OFFLINE})" in await run("tasks", "list")

    async with serve_program(
        tmp_path, workspace, *arguments, environment=variables(port), loaded=loaded_isthmus
    ) as server:
        async with server.client() as client:
            turn = await client.prompt(PromptMessage("hi", settings={"workspace_path": str(workspace)}))
            async for delivery in turn.deliveries:
                if isinstance(delivery.event, StateChange) and delivery.event.reason == OFFLINE:
                    break
                if isinstance(delivery.event, RetryNotice):
                    assert delivery.event.is_offline
        assert await is_shown_as_offline()
        server.process.send_signal(signal.SIGKILL)
        await server.process.wait()
    async with (
        serve_program(tmp_path, workspace, *arguments, environment=variables(port), loaded=loaded_isthmus) as server,
        server.client() as client,
    ):
        await eventually_async(is_shown_as_offline, what="the next process waits as well")
        with GeminiWire([ANSWER], port) as wire:
            async for delivery in (await client.follow(turn.task_id)).deliveries:
                if isinstance(delivery.event, StateChange) and delivery.event.state.is_terminal:
                    break
            snapshot = await client.get(turn.task_id)
            assert (snapshot.state, snapshot.reason) == (TaskState.COMPLETED, None)
            assert len(wire.model_requests) == 1
    await run("journal", "verify")


def test_the_page_says_that_the_agent_waits(
    tmp_path: Path, workspace: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    for name, value in variables(port).items():
        monkeypatch.setenv(name, value)
    with workbench(
        tmp_path, workspace, "name: unused\nscenarios: [{prompt: '.', replies: [{text: x}]}]\n", "-m", "gemini:test"
    ) as served:
        page = served.watched(served.let_in(browser))
        served.prompt(page, "are you there?")
        expect(page.locator(".banner")).to_contain_text("The model cannot be reached.")
        with GeminiWire([ANSWER], port):
            expect(page.locator("isthmus-items")).to_contain_text("Here I am.")
            expect(page.get_by_text("The model cannot be reached.")).to_have_count(0)
