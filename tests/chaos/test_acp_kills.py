"""Kills ``isthmus acp --connect`` and its server while a question waits: another client loads the session."""

import itertools
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from support.acp_wire import AcpProgram, acp_program
from support.ports import free_port
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

ORDERS = [order for length in (1, 2) for order in itertools.permutations(("acp", "server"), length)]


class Programs:
    """A server at one port, which can be started again, and clients of it."""

    def __init__(self, folder: Path, workspace: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self.workspace = workspace
        self._stack = stack
        self._port = str(free_port())
        self.url = f"http://127.0.0.1:{self._port}/"

    async def server(self) -> ServeProgram:
        return await self._stack.enter_async_context(serve_program(self._folder, self.workspace, "--port", self._port))

    async def client(self) -> AcpProgram:
        token_file = str(self._folder / "token")
        program = acp_program(self.workspace, "--connect", self.url, "--token-file", token_file)
        client = await self._stack.enter_async_context(program)
        await client.initialized()
        return client

    async def asked(self, client: AcpProgram) -> tuple[str, "Any"]:
        """Begin a session with a prompt that ends in a question; return its id and the prompt's response to come."""
        opened = await client.request("session/new", cwd=str(self.workspace), mcpServers=[])
        session_id = opened["result"]["sessionId"]
        prompt = [{"type": "text", "text": "greet me"}]
        response = client.begin("session/prompt", sessionId=session_id, prompt=prompt)
        await client.question()
        return session_id, response

    async def load(self, client: AcpProgram, session_id: str) -> dict[str, Any]:
        return await client.request("session/load", sessionId=session_id, cwd=str(self.workspace), mcpServers=[])


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def statuses(client: AcpProgram) -> list[str]:
    updates = [message["params"]["update"] for message in client.updates]
    return [update["status"] for update in updates if "status" in update]


@pytest.mark.parametrize("order", ORDERS, ids=", then ".join)
async def test_a_question_outlives_whoever_is_killed(tmp_path: Path, workspace: Path, order: tuple[str, ...]) -> None:
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        server = await programs.server()
        first = await programs.client()
        session_id, _ = await programs.asked(first)
        for killed in order:
            if killed == "acp":
                await first.kill()
            else:
                server.process.kill()
                await server.process.wait()
        if "server" in order:
            await programs.server()
        other = await programs.client()
        assert (await programs.load(other, session_id))["result"]["modes"]["currentModeId"] == "default"
        assert other.text("user_message_chunk") == "greet me"
        question = await other.question()
        assert question["params"]["toolCall"]["kind"] == "edit"
        other.choose(question, "proceed_once")
        await eventually_async(lambda: other.text() == "I wrote the greeting.")
        assert (workspace / "greeting.txt").read_text() == "hello\n"
        other.updates.clear()
        assert "result" in await programs.load(other, session_id)
        assert statuses(other) == ["pending", "in_progress", "completed"]
        assert len(other.questions) == 1


async def test_the_same_client_goes_on_with_a_server_that_was_killed(tmp_path: Path, workspace: Path) -> None:
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        server = await programs.server()
        client = await programs.client()
        _, response = await programs.asked(client)
        server.process.kill()
        await server.process.wait()
        await programs.server()
        client.choose(client.questions[0], "proceed_once")
        assert (await response)["result"] == {"stopReason": "end_turn"}
        assert client.text() == "I wrote the greeting."
        assert (workspace / "greeting.txt").read_text() == "hello\n"


async def test_two_clients_are_asked_once_each_and_the_first_answer_counts(tmp_path: Path, workspace: Path) -> None:
    async with AsyncExitStack() as stack:
        programs = Programs(tmp_path, workspace, stack)
        await programs.server()
        first, second = await programs.client(), await programs.client()
        session_id, response = await programs.asked(first)
        await programs.load(second, session_id)
        second.choose(await second.question(), "proceed_once")
        assert (await response)["result"] == {"stopReason": "end_turn"}
        await eventually_async(lambda: second.text() == "I wrote the greeting.")
        assert first.withdrawn == [first.questions[0]["id"]]
        assert (len(first.questions), len(second.questions)) == (1, 1)
        assert (workspace / "greeting.txt").read_text() == "hello\n"
