"""Random clients on the same sessions: every request is answered, no text is shown twice, nothing is left running."""

import asyncio
import itertools
import random
from collections.abc import Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from isthmus.client import AgentClient, PromptMessage
from isthmus.events import TextContent
from support import acp_frames
from support.acp_front import ALLOW, BOTH_VERSIONS, CANCELLED, REJECT, FrontClient, RefusedError, front
from support.fuzzing import TIMEOUT, cases
from support.memory_agent import Ask, MemoryAgent, Step, write_file_call
from support.script_agent import engine_playing
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(TIMEOUT)]

SHARE = 0.01
ACTIONS = 40
REFUSALS = (-32002, -32600, -32603, -32800)
"""Codes of refusals that are part of the game: a session that is not open, a prompt that runs, a turn that failed."""


@dataclass
class Player:
    """A client that acts at random. ``loaded`` is where its last load began among its messages, for each session."""

    client: FrontClient
    workspace: Path
    loaded: dict[str, int] = field(default_factory=dict[str, int])
    open: "list[asyncio.Future[Any]]" = field(default_factory=list["asyncio.Future[Any]"])
    answered: int = 0

    async def act(self, chance: random.Random, sessions: Sequence[str]) -> None:
        """Do one thing in one of the sessions."""
        session = chance.choice(sessions)
        match chance.choice(
            ["load", "load", "resume", "prompt", "prompt", "prompt", "cancel", "close", "answer", "answer"]
        ):
            case "load":
                self.loaded[session] = len(self.client.messages)
                await self.settled(self.client.load(session, self.workspace))
            case "resume":
                self.loaded[session] = len(self.client.messages)
                await self.request("session/resume", sessionId=session, cwd=str(self.workspace))
            case "prompt":
                text = chance.choice(["edit", "edit twice", "talk"])
                self.open.append(await self.client.begin_prompt(session, text))
            case "cancel":
                await self.client.notify("session/cancel", sessionId=session)
            case "close":
                await self.request("session/close", sessionId=session)
            case _:
                await self.answer(chance)
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)

    async def answer(self, chance: random.Random) -> None:
        """Answer the next question in some way."""
        if self.answered < len(self.client.questions):
            question = self.client.questions[self.answered]
            self.answered += 1
            good: dict[str, Any] = {"result": chance.choice([ALLOW, ALLOW, REJECT, CANCELLED])}
            members = good if chance.random() < 0.7 else acp_frames.answer(chance, "proceed_once")
            await self.client.send({"id": question["id"], **members})

    async def request(self, method: str, **params: Any) -> None:
        """Send a request, and wait for its answer, whatever it is."""
        await self.settled(self.client.call(method, **params))

    async def settled(self, answer: Awaitable[Any]) -> None:
        """Wait for an answer, whatever it is."""
        try:
            await answer
        except RefusedError as error:
            assert error.code in REFUSALS, error  # noqa: PT017

    async def settle(self) -> None:
        """Allow what is asked until all requests are answered, and the turns of all prompts have ended."""

        async def all_answered() -> bool:
            for question in self.client.questions[self.answered :]:
                self.answered += 1
                await self.client.respond(question, ALLOW)
            return all(result.done() for result in self.open)

        await eventually_async(all_answered, 20, what="all requests are answered")
        for result in self.open:
            error = result.exception()
            assert error is None or (isinstance(error, RefusedError) and error.code in REFUSALS), error

    def shows_nothing_twice(self) -> None:
        """Fail if a text came twice, apart from those that a load sends again: from the first prompt that it sends."""
        seen: dict[str, set[str]] = {}
        loaded = dict(self.loaded)
        for index, message in enumerate(self.client.messages):
            update = message.get("params", {}).get("update", {})
            session = message.get("params", {}).get("sessionId", "")
            if update.get("sessionUpdate") == "user_message_chunk" and index >= loaded.get(session, index + 1):
                del loaded[session]
                seen[session] = set()
            if update.get("sessionUpdate") == "agent_message_chunk":
                text = update["content"]["text"]
                assert session in loaded or text not in seen.get(session, ()), text
                seen.setdefault(session, set()).add(text)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", ["in memory", "real engine"])
async def test_random_clients_get_every_answer_and_no_text_twice(kind: str, version: int, workspace: Path) -> None:
    for number, chance in enumerate(cases(f"acp sessions, {kind}, version {version}", SHARE, least=3)):
        if kind == "in memory":
            agent = MemoryAgent(Numbered())
            await play(chance, agent, workspace, version)
            await eventually_async(lambda a=agent: a.followers == 0, 10)
            await agent.aclose()
        else:
            folder = workspace.parent / str(number)
            folder.mkdir()
            async with engine_playing(Numbered(), folder) as engine:
                try:
                    await play(chance, engine, workspace, version)
                finally:
                    await engine.aclose()


def client(agent: AgentClient, version: int) -> AbstractAsyncContextManager[FrontClient]:
    """Return a client of a version."""
    return front(agent, options=BOTH_VERSIONS, version=version)


async def play(chance: random.Random, agent: AgentClient, workspace: Path, version: int) -> None:
    """Let two clients act on two sessions, with an agent whose texts are all different."""
    async with AsyncExitStack() as stack:
        other = chance.choice([1, 2])
        clients = [await stack.enter_async_context(client(agent, each)) for each in (version, other)]
        sessions = [await clients[0].new(workspace) for _ in range(2)]
        players = [Player(client, workspace) for client in clients]
        for _ in range(ACTIONS):
            await chance.choice(players).act(chance, sessions)
        for player in players:
            await player.settle()
        for player in players:
            player.shows_nothing_twice()
    tasks = [await agent.get(task.task_id, 1000) for task in await agent.tasks()]
    async with client(agent, version) as last:
        for session in sessions:
            last.messages.clear()
            await last.load(session, workspace)
            whole = [task for task in tasks if task.context_id == session]
            said = {message.text for task in whole for message in task.history if message.role == "agent"}
            if all(task.state.is_terminal for task in whole):
                shown: dict[str, str] = {}
                for update in last.of_kind("agent_message_chunk"):
                    name = update["messageId"]
                    shown[name] = shown.get(name, "") + update["content"]["text"]
                assert sorted(shown.values()) == sorted(said)


class Numbered:
    """A script of texts and calls that no other prompt has."""

    def __init__(self) -> None:
        self._prompts = itertools.count()

    def __call__(self, message: PromptMessage) -> Sequence[Step]:
        """Return the steps for a prompt."""
        prompt = next(self._prompts)
        said = [TextContent(f"{prompt}-{n}", f"{prompt}-{n} ") for n in range(4)]
        calls = [write_file_call(f"{prompt}-call-{n}") for n in range(2)]
        match message.text:
            case "edit":
                return (said[0], Ask((calls[0],)), said[1])
            case "edit twice":
                return (said[0], Ask(tuple(calls)), said[1], said[2])
            case _:
                return said
