"""Work that no user watches waits as long as a provider asks for, shows that it does, and can be ended meanwhile."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.events import RetryNotice, TaskState
from support.gemini_wire import GeminiWire
from support.headless_gemini import RunHere
from support.isthmus_program import ISTHMUS
from support.loaded_program import LoadedProgram
from support.scripted_wire import Failure, Reply, Say
from support.serve_program import serve_program

pytestmark = pytest.mark.anyio

BUSY = "trying again in 500 s (attempt 2 of 10)"


def environment(wire: GeminiWire) -> dict[str, str]:
    return {"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": wire.base_url}


def test_a_script_waits_as_long_as_the_provider_asks_and_can_be_cancelled(workspace: Path) -> None:
    with GeminiWire([Failure(429, "slow down", retry_after=500)]) as wire:
        process = subprocess.Popen(
            [*ISTHMUS, "-p", "hi", "-m", "gemini:test", "--no-ide"],
            cwd=workspace, env={**os.environ, **environment(wire)}, text=True, encoding="utf-8",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        with process:
            try:
                assert process.stderr is not None
                line = process.stderr.readline()
                assert "slow down" in line
                assert BUSY in line
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 130
            finally:
                process.kill()


def test_a_script_survives_more_failures_than_a_user_would_wait_for(run_here: RunHere) -> None:
    replies = [*[Failure(503, "busy", retry_after=0)] * 8, Reply.of(Say("there"))]
    status, output, errors, _ = run_here("-p", "hi", "-m", "gemini:test", "--no-ide", replies=replies)
    assert (status, output) == (0, "there\n")
    assert errors.count("busy; trying again in 0 s") == 8
    assert "(attempt 9 of 10)" in errors


async def test_a_server_waits_as_well_and_a_client_sees_and_ends_it(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with GeminiWire([Failure(429, "slow down", retry_after=500)]) as wire:
        variables = environment(wire)
        async with (
            serve_program(
                tmp_path, workspace, "-m", "gemini:test", environment=variables, loaded=loaded_isthmus
            ) as server,
            server.client() as client,
        ):
            turn = await client.prompt(PromptMessage("hi", settings={"workspace_path": str(workspace)}))
            async for delivery in turn.deliveries:
                if isinstance(delivery.event, RetryNotice):
                    assert (delivery.event.attempts, delivery.event.delay) == (10, 500)
                    break
            assert (await client.cancel(turn.task_id)).state is TaskState.CANCELED
