"""Companions with an agent attached beside which files are written, and the user's commands about them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from isthmus.ide.control.control_client import RefusedError, RunningCompanion, ask, running
from isthmus.ide.editor import Editor
from isthmus.ide.options import CompanionOptions
from isthmus.ide.written_changes.written_changes import WrittenChanges
from support.claude_cli import claude_cli
from support.companion import BareAgent, running_host
from support.isthmus_program import CompanionProgram
from support.plain_http import plain_client
from support.waiting import eventually_async


@asynccontextmanager
async def watching_agent(companion: CompanionProgram, *, is_recorded: bool = True) -> AsyncGenerator[BareAgent]:
    """Attach an agent; yield it once the companion follows what it writes, unless it does not record that."""
    headers = {"authorization": f"Bearer {companion.discovered['authToken']}"}
    base = f"http://127.0.0.1:{companion.ready['port']}"
    async with plain_client(base_url=base, headers=headers) as http:
        agent = BareAgent(http)
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            user = User(companion)
            if is_recorded:
                await eventually_async(user.is_following, what="the companion follows the workspace")
            yield agent


@asynccontextmanager
async def recording(editor: Editor, workspace: Path) -> AsyncGenerator[WrittenChanges]:
    """Yield what a companion of an editor records, once an agent is attached."""
    async with running_host(editor, CompanionOptions(folders=(str(workspace),))) as (host, _, _), claude_cli(workspace):
        assert host.companion is not None
        written = host.companion.written

        async def follows() -> bool:
            return (await written.listing())["following"]

        await eventually_async(follows, what="the companion follows the workspace")
        yield written


class User:
    """The user of a companion, on its control channel."""

    def __init__(self, companion: CompanionProgram) -> None:
        self._port = companion.ready["port"]

    def companion(self) -> RunningCompanion:
        """Return the companion's control file."""
        (found,) = [each for each in running() if each.port == self._port]
        return found

    async def ask(self, command: str, **arguments: object) -> dict[str, Any]:
        """Return the result of a command."""
        return dict(await asyncio.to_thread(ask, self.companion(), command, wait_seconds=60, **arguments))

    async def refusal(self, command: str, **arguments: object) -> str:
        """Return why a command was refused."""
        try:
            result = await self.ask(command, **arguments)
        except RefusedError as error:
            return str(error)
        raise AssertionError(f"expected a refusal, received {result}")

    async def is_following(self) -> bool:
        """Return whether writes of agents are recorded."""
        return (await self.ask("written"))["following"]

    async def listed(self) -> dict[str, list[int]]:
        """Return the turns of each changed file by its name."""
        return {Path(file["path"]).name: file["turns"] for file in (await self.ask("written"))["files"]}

    async def hunks(self, path: Path, turn: int | None = None) -> list[dict[str, Any]]:
        """Return the hunks of a file."""
        return (await self.ask("written_file", path=str(path), turn=turn))["hunks"]
