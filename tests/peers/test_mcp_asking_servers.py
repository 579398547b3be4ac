"""Servers of our own that ask in the middle of a call: choices, pages, impatience, the revision of 2026, ends."""

import json
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from support.mcp_hosting import write_servers
from support.serve_program import ServeProgram, serve_program
from support.surroundings import Surroundings
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).resolve().parent.parent / "support" / "asking_mcp_server.py"
PAGE = "http://127.0.0.1:9/account"


def script(tool: str, arguments: dict[str, Any] | None = None) -> str:
    call = json.dumps({"name": tool, "arguments": arguments or {}})
    return f"""
name: asking
scenarios:
  - prompt: 'Resource'
    replies: [{{text: 'a bird'}}]
  - prompt: '.'
    replies: [{{call: {call}}}, {{text: done}}]
"""


def asking(tmp_path: Path, *arguments: str, **settings: Any) -> dict[str, Any]:
    return {
        "asking": {
            "command": sys.executable,
            "args": [str(SERVER), str(tmp_path / "log"), *arguments],
            "trust": True,
            **settings,
        }
    }


def logged(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text(encoding="utf-8").split()


class Person:
    """Asks the agent, and answers it; ``calls`` are the last states of all calls, in order."""

    def __init__(self, agent: RemoteAgent, workspace: Path) -> None:
        self.agent = agent
        self.workspace = workspace
        self.calls: dict[str, ToolCall] = {}
        self.task = ""

    async def prompt(self, text: str = "go") -> StateChange:
        settings = {"workspace_path": str(self.workspace)}
        turn = await self.agent.prompt(PromptMessage(text, settings=settings))
        self.task = turn.snapshot.task_id
        return await self.take(turn)

    async def take(self, turn: Turn) -> StateChange:
        events: list[AgentEvent] = [delivery.event async for delivery in turn.deliveries]
        for event in events:
            if isinstance(event, ToolCallUpdate):
                self.calls[event.tool_call.tool_call_id] = event.tool_call
        last = events[-1]
        assert isinstance(last, StateChange)
        return last

    async def answer(self, option: str) -> StateChange:
        confirmation = [ToolCallConfirmation(self.question.tool_call_id, option)]
        return await self.take(await self.agent.answer(self.task, confirmation, answered_by="test"))

    async def has_ended(self) -> None:
        """Wait until the task is completed without being asked for: its stream may end at the question till then."""

        async def is_completed() -> bool:
            return (await self.agent.get(self.task)).state is TaskState.COMPLETED

        await eventually_async(is_completed, 40)

    @property
    def question(self) -> ToolCall:
        (found,) = [call for call in self.calls.values() if call.confirmation_request is not None]
        return found

    @property
    def shown(self) -> str:
        request = self.question.confirmation_request
        assert request is not None
        assert request.generic_details is not None
        return request.generic_details.description

    def call(self, name: str) -> ToolCall:
        return next(call for call in self.calls.values() if call.tool_name == name)

    def said(self, name: str) -> str:
        call = self.call(name)
        return (call.error.message if call.error is not None else "") + (
            call.output.text or "" if call.output is not None else ""
        )


async def person_of(server: ServeProgram, workspace: Path, **options: Any) -> Person:
    return Person(await RemoteAgent.connect(server.url, server.token, **options), workspace)


@pytest.mark.parametrize("protocol", ["0.3", "1.0"])
@pytest.mark.parametrize(
    ("tool", "options", "chosen", "said"),
    [
        ("agree", ["yes", "no", "decline", "cancel"], "no", "accept {'agree': False}"),
        ("colour", ["choice-1", "choice-2", "decline", "cancel"], "choice-1", "accept {'colour': 'r'}"),
    ],
)
async def test_one_question_with_few_answers_is_asked_without_a_document(
    surroundings: Surroundings,
    tmp_path: Path,
    workspace: Path,
    tool: str,
    options: list[str],
    chosen: str,
    said: str,
    protocol: str,
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script(tool)) as server:
        person = await person_of(server, workspace, protocol=protocol)
        assert await person.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        assert person.question.confirmation_request is not None
        assert [option.id for option in person.question.confirmation_request.options] == options
        assert "\x1b" not in person.shown
        assert await person.answer(chosen) == StateChange(TaskState.COMPLETED)
        assert said in person.said(tool)
        await person.agent.aclose()


async def test_the_answer_may_come_from_another_client(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("agree")) as server:
        person = await person_of(server, workspace, protocol="0.3")
        await person.prompt()
        await person.agent.aclose()
        other = await person_of(server, workspace, protocol="1.0")
        snapshot = await other.agent.get(person.task)
        (question,) = snapshot.pending
        assert question.tool_name == "elicitation"
        other.task, other.calls = person.task, {question.tool_call_id: question}
        assert await other.answer("yes") == StateChange(TaskState.COMPLETED)
        assert "accept {'agree': True}" in other.said("agree")
        assert logged(tmp_path) == ["agree"]
        await other.agent.aclose()


async def test_cancelling_the_task_cancels_the_call_that_asks(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("agree")) as server:
        person = await person_of(server, workspace)
        await person.prompt()
        assert (await person.agent.cancel(person.task)).state is TaskState.CANCELED

        async def is_cancelled() -> bool:
            return "cancelled" in logged(tmp_path)

        await eventually_async(is_cancelled, 20)
        await person.take(await person.agent.follow(person.task, 0))
        assert {call.status for call in person.calls.values()} == {ToolCallStatus.CANCELLED}
        await person.agent.aclose()


async def test_a_question_that_the_server_takes_back_is_closed_and_the_turn_goes_on(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("impatient")) as server:
        person = await person_of(server, workspace)
        await person.prompt()

        async def has_ended() -> bool:
            return (await person.agent.get(person.task)).state is TaskState.COMPLETED

        await eventually_async(has_ended, 30)
        await person.take(await person.agent.follow(person.task, 0))
        assert person.call("elicitation").status is ToolCallStatus.CANCELLED
        assert person.said("impatient") == "too late"
        await person.agent.aclose()


async def test_a_server_that_dies_while_its_question_is_open_ends_the_call_and_the_turn_goes_on(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("agree")) as server:
        person = await person_of(server, workspace)
        await person.prompt()
        (asker,) = [
            child
            for child in psutil.Process(server.process.pid).children(recursive=True)
            if SERVER.name in " ".join(child.cmdline()[:2])
        ]
        asker.kill()

        await person.has_ended()
        await person.take(await person.agent.follow(person.task, 0))
        assert person.call("elicitation").status is ToolCallStatus.CANCELLED
        assert person.call("agree").status is ToolCallStatus.FAILED
        await person.agent.aclose()
    assert logged(tmp_path).count("agree") == 1


async def test_after_kill_9_the_next_server_closes_the_question_and_does_not_make_the_call_again(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("agree")) as server:
        person = await person_of(server, workspace)
        await person.prompt()
        await server.end(signal.SIGKILL)
        await person.agent.aclose()
    async with serve_program(tmp_path, workspace, script=script("agree")) as server:
        again = await person_of(server, workspace)
        again.task, again.calls = person.task, person.calls
        await again.has_ended()  # though nobody answers
        assert await again.take(await again.agent.follow(again.task, 0)) == StateChange(TaskState.COMPLETED)
        interrupted = again.call("agree")
        assert interrupted.error is not None
        assert interrupted.error.type == "interrupted"
        assert again.call("elicitation").status is ToolCallStatus.CANCELLED
        assert "was not passed on" in again.said("elicitation")
        await again.agent.aclose()
    assert logged(tmp_path).count("agree") == 1


@pytest.mark.parametrize(("option", "action"), [("accept", "accept"), ("decline", "decline"), ("cancel", "cancel")])
async def test_a_person_is_shown_where_a_page_leads_before_it_is_visited(
    surroundings: Surroundings, tmp_path: Path, workspace: Path, option: str, action: str
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("page")) as server:
        person = await person_of(server, workspace)
        await person.prompt()
        assert f"  {PAGE}\nIts host: 127.0.0.1:9\n" in person.shown
        assert await person.answer(option) == StateChange(TaskState.COMPLETED)
        assert person.said("page") == action
        await person.agent.aclose()


async def test_a_page_that_hides_where_it_leads_is_declined_and_noted(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    url = "https://bank.example@evil.example/"
    async with serve_program(tmp_path, workspace, script=script("page", {"url": url})) as server:
        person = await person_of(server, workspace)
        assert await person.prompt() == StateChange(TaskState.COMPLETED)
        assert person.said("page") == "decline"
        await person.agent.aclose()


@pytest.mark.parametrize("completes", [False, True])
async def test_a_call_that_needs_a_page_is_made_again_when_the_person_or_the_server_is_done(
    surroundings: Surroundings, tmp_path: Path, workspace: Path, completes: bool
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    text = script("needs_page", {"completes": completes})
    async with serve_program(tmp_path, workspace, script=text) as server:
        person = await person_of(server, workspace)
        await person.prompt()
        assert PAGE in person.shown
        assert await person.answer("accept") == StateChange(TaskState.INPUT_REQUIRED)
        assert "is called again when you are done" in person.shown
        if completes:
            (tmp_path / "log.visited").touch()

            async def has_ended() -> bool:
                return (await person.agent.get(person.task)).state is TaskState.COMPLETED

            await eventually_async(has_ended, 30)
            await person.take(await person.agent.follow(person.task, 0))
        else:
            assert await person.answer("accept") == StateChange(TaskState.COMPLETED)
        assert person.said("needs_page") == "after the page"
        assert logged(tmp_path) == ["needs_page"] * 2
        await person.agent.aclose()


async def test_a_call_whose_page_nobody_visits_fails_and_is_not_made_again(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path))
    async with serve_program(tmp_path, workspace, script=script("needs_page")) as server:
        person = await person_of(server, workspace)
        await person.prompt()
        assert await person.answer("decline") == StateChange(TaskState.COMPLETED)
        assert "needs a page that was not visited" in person.said("needs_page")
        assert logged(tmp_path) == ["needs_page"]
        await person.agent.aclose()


async def test_the_revision_of_2026_asks_for_all_at_once_and_is_answered_one_by_one(
    surroundings: Surroundings, tmp_path: Path, workspace: Path
) -> None:
    write_servers(surroundings.home, asking(tmp_path, "modern"))
    async with serve_program(tmp_path, workspace, script=script("ask_first")) as server:
        person = await person_of(server, workspace)
        assert await person.prompt() == StateChange(TaskState.INPUT_REQUIRED)
        answers = {"elicitation": "yes", "sampling": "proceed_once"}
        first = person.question.tool_name
        assert await person.answer(answers.pop(first)) == StateChange(TaskState.INPUT_REQUIRED)
        assert await person.answer(answers.pop(person.question.tool_name)) == StateChange(TaskState.COMPLETED)
        assert person.said("ask_first") == f"accept {{'agree': True}} / a bird / {workspace.resolve().as_uri()}"
        assert logged(tmp_path) == ["ask_first", "answered"]
        await person.agent.aclose()
