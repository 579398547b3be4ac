"""A client whose author knows the extension's document alone, on raw sockets: Appendix A against ``isthmus serve``.

It sends no header that the document does not name. The server requires the extension, so a request that were not
recognised would be refused.
"""

import asyncio
import signal
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from support.loaded_program import LoadedProgram
from support.rfc_client import RfcClient, rfc_client_of
from support.rfc_scenario import (
    Script,
    continue_completed,
    first_half,
    run_appendix_a,
    run_cancelled,
    run_command,
    run_reconnected,
    run_startup,
    run_two_at_once,
    second_half,
)
from support.serve_program import SILENT_EDIT_SCRIPT, serve_program
from support.shared_serve import SharedServe, shared_serve

pytestmark = pytest.mark.anyio

STRICT = "--strict-extension"
GREETING = Script("Greet the world", "greeting.txt", "hello\n", "I wrote the greeting.")
MORE = ("and again", "You said: and again")


@pytest.fixture(scope="module", params=["strict", "any-client"])
async def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[SharedServe]:
    """Start a server that refuses clients without the extension, and one that does not."""
    arguments = (STRICT,) if request.param == "strict" else ()
    async with shared_serve(tmp_path_factory.mktemp("served"), SILENT_EDIT_SCRIPT, *arguments) as running:
        yield running


@pytest.fixture
def client(served: SharedServe) -> RfcClient:
    return rfc_client_of(served.program.url, served.program.token)


@pytest.fixture
def workspace(served: SharedServe) -> Path:
    """Return a folder of the test's own where the shared server works."""
    return served.workspace(str(uuid.uuid4()))


async def test_every_step_of_appendix_a_is_as_written(client: RfcClient, workspace: Path) -> None:
    await asyncio.to_thread(run_appendix_a, client, workspace, GREETING, *MORE)


async def test_two_tasks_at_once_do_not_mix(client: RfcClient, served: SharedServe) -> None:
    folders = (served.workspace(str(uuid.uuid4())), served.workspace(str(uuid.uuid4())))
    await asyncio.to_thread(run_two_at_once, client, folders, (GREETING, GREETING))


async def test_a_lost_stream_is_subscribed_to_again(client: RfcClient, workspace: Path) -> None:
    await asyncio.to_thread(run_reconnected, client, workspace, GREETING)


async def test_a_cancellation_skips_the_execution(client: RfcClient, workspace: Path) -> None:
    await asyncio.to_thread(run_cancelled, client, workspace, GREETING)


async def test_the_users_own_content_is_written(client: RfcClient, workspace: Path) -> None:
    def play() -> None:
        waiting = first_half(client, workspace, GREETING)
        second_half(client, waiting, workspace, GREETING, "hello, world\n")

    await asyncio.to_thread(play)


async def test_commands_are_listed_at_the_start_and_run(client: RfcClient) -> None:
    commands = await asyncio.to_thread(run_startup, client)
    assert {"help", "memory"} <= {command.name for command in commands}
    run, _ = await asyncio.to_thread(run_command, client, ["help"], "")
    assert run.start.execution_id


async def test_the_question_survives_kill_9_between_steps_4_and_6(
    tmp_path: Path, loaded_isthmus: LoadedProgram
) -> None:
    workspace = tmp_path.resolve() / "workspace"
    workspace.mkdir()
    async with serve_program(tmp_path, workspace, STRICT, script=SILENT_EDIT_SCRIPT, loaded=loaded_isthmus) as program:
        waiting = await asyncio.to_thread(first_half, rfc_client_of(program.url, program.token), workspace, GREETING)
        assert await program.end(signal.SIGKILL) == -signal.SIGKILL
    async with serve_program(tmp_path, workspace, STRICT, script=SILENT_EDIT_SCRIPT, loaded=loaded_isthmus) as program:
        later = rfc_client_of(program.url, program.token)
        await asyncio.to_thread(second_half, later, waiting, workspace, GREETING)
        await asyncio.to_thread(continue_completed, later, waiting, *MORE)
