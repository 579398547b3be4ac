"""``isthmus acp`` as a program, and a client that speaks the wire itself: lines of JSON, nothing of ours or an SDK."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.streamed_program import StreamedProgram, streamed_program
from support.waiting import eventually_async

SECONDS = 60
"""Maximum wait for an answer."""


class AcpProgram:
    """A running ``isthmus acp``. ``updates`` and ``questions`` are the messages that came, oldest first."""

    def __init__(self, process: StreamedProgram) -> None:
        self.process = process
        self.updates: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.withdrawn: list[int] = []
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its response, with ``result`` or ``error``."""
        return await asyncio.wait_for(self.begin(method, **params), SECONDS)

    def begin(self, method: str, **params: Any) -> "asyncio.Future[dict[str, Any]]":
        """Send a request, and return its response when it comes."""
        number = next(self._ids)
        response = self._waiting[number] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return response

    def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def initialized(self, **capabilities: Any) -> dict[str, Any]:
        """Initialize the connection, and return the agent's answer."""
        response = await self.request("initialize", protocolVersion=1, clientCapabilities=capabilities)
        return response["result"]

    @property
    def shown(self) -> list[dict[str, Any]]:
        """The updates of all sessions."""
        return [message["params"]["update"] for message in self.updates]

    async def question(self, count: int = 1) -> dict[str, Any]:
        """Return the question with this number, counted from 1, once it is asked."""
        await eventually_async(lambda: len(self.questions) >= count, SECONDS)
        return self.questions[count - 1]

    def choose(self, question: dict[str, Any], option_id: str, **more: Any) -> None:
        """Answer a question."""
        outcome = {"outcome": {"outcome": "selected", "optionId": option_id}, **more}
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": outcome})

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the updates of a kind."""
        updates = [message["params"]["update"] for message in self.updates]
        return [update for update in updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all chunks of a kind."""
        return "".join(update["content"]["text"] for update in self.of_kind(kind))

    async def kill(self) -> None:
        """End the program at once, as ``kill -9`` does."""
        self.process.kill()
        await self.process.wait()
        await self._reading

    async def end(self) -> int:
        """End the input, and return the program's exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = await asyncio.wait_for(self.process.wait(), SECONDS)
        await self._reading
        return status

    async def _read(self) -> None:
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            match message:
                case {"method": "session/update"}:
                    self.updates.append(message)
                case {"method": "$/cancel_request", "params": {"requestId": int() as number}}:
                    self.withdrawn.append(number)
                    cancelled = {"code": -32800, "message": "withdrawn"}
                    self.send({"jsonrpc": "2.0", "id": number, "error": cancelled})
                case {"method": _, "id": _}:
                    self.questions.append(message)
                case {"id": int() as number} if number in self._waiting:
                    self._waiting.pop(number).set_result(message)
                case _:
                    raise AssertionError(f"expected a message of ACP, received {line!r}")
        for response in self._waiting.values():
            response.cancel()


@asynccontextmanager
async def acp_program(folder: Path, *arguments: str) -> AsyncGenerator[AcpProgram]:
    """Start ``isthmus acp`` in a folder, and kill it at the end if it still runs."""
    async with streamed_program("acp", *arguments, folder=folder) as process:
        program = AcpProgram(process)
        try:
            yield program
        finally:
            await program.kill()
