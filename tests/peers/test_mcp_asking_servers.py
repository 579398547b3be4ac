"""Test servers that ask during a call: choices, pages, impatience, the revision of 2026, ends."""

import contextlib
import json
import signal
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import psutil
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from support.extended import first_of
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.mcp_hosting import write_servers
from support.serve_program import serve_program
from support.shared_serve import SharedServe, shared_serve
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).resolve().parent.parent / "support" / "asking_mcp_server.py"
PAGE = "http://127.0.0.1:9/account"
HIDDEN_PAGE = "https://bank.example@evil.example/"
LOG = "asking.log"
"""Name of the log in the folder where the server runs, which is the workspace."""


def scenario(prompt: str, tool: str, **arguments: Any) -> str:
    call = json.dumps({"name": tool, "arguments": arguments})
    return f"  - prompt: '^{prompt}$'\n    replies: [{{call: {call}}}, {{text: done}}]\n"


SCRIPT = (
    "name: asking\nscenarios:\n"
    + scenario("agree", "agree")
    + scenario("colour", "colour")
    + scenario("impatient", "impatient")
    + scenario("page", "page")
    + scenario("hidden page", "page", url=HIDDEN_PAGE)
    + scenario("needs page", "needs_page")
    + scenario("needs page that completes", "needs_page", completes=True)
    + scenario("ask first", "ask_first")
    + "  - prompt: 'Resource'\n    replies: [{text: 'a bird'}]\n"
)


def asking(*arguments: str) -> dict[str, Any]:
    return {"asking": {"command": sys.executable, "args": [str(SERVER), LOG, *arguments], "trust": True}}


def logged(workspace: Path) -> list[str]:
    return (workspace / LOG).read_text(encoding="utf-8").split()


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SharedServe]:
    async with shared_serve(tmp_path_factory.mktemp("serve"), SCRIPT, servers=asking()) as serve:
        yield serve


@pytest.fixture
def place(shared: SharedServe) -> Path:
    """Return a workspace for all tests that end their calls: they share the server, with a new log each."""
    folder = shared.workspace("together")
    for name in (LOG, "asking.visited", "asking.late"):
        (folder / name).unlink(missing_ok=True)
    return folder


@pytest.fixture
def user(shared: SharedServe, place: Path) -> "UserPrompts":
    return UserPrompts(shared.agent, place)


class UserPrompts:
    """A client that prompts the agent and answers it; ``calls`` are the last states of all calls, in order."""

    def __init__(self, agent: RemoteAgent, workspace: Path) -> None:
        self.agent = agent
        self.workspace = workspace
        self.calls: dict[str, ToolCall] = {}
        self.task = ""

    async def prompt(self, text: str) -> StateChange:
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
        """Wait until the task is completed without a request for it: its stream may end at the question before."""

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


@pytest.mark.parametrize("protocol", first_of(["1.0", "0.3"]))
async def test_one_question_with_few_answers_is_asked_without_a_document(
    shared: SharedServe, place: Path, protocol: str
) -> None:
    agent = await RemoteAgent.connect(shared.program.url, shared.program.token, protocol=protocol)
    for tool, options, chosen, said in (
        ("agree", ["yes", "no", "decline", "cancel"], "no", "accept {'agree': False}"),
        ("colour", ["choice-1", "choice-2", "decline", "cancel"], "choice-1", "accept {'colour': 'r'}"),
    ):
        user = UserPrompts(agent, place)
        assert await user.prompt(tool) == StateChange(TaskState.INPUT_REQUIRED)
        assert user.question.confirmation_request is not None
        assert [option.id for option in user.question.confirmation_request.options] == options
        assert "\x1b" not in user.shown
        assert await user.answer(chosen) == StateChange(TaskState.COMPLETED)
        assert said in user.said(tool)
    await agent.aclose()


async def test_the_answer_may_come_from_another_client(shared: SharedServe, place: Path) -> None:
    url, token = shared.program.url, shared.program.token
    user = UserPrompts(await RemoteAgent.connect(url, token, protocol="0.3"), place)
    await user.prompt("agree")
    await user.agent.aclose()
    other = UserPrompts(await RemoteAgent.connect(url, token, protocol="1.0"), place)
    snapshot = await other.agent.get(user.task)
    (question,) = snapshot.pending
    assert question.tool_name == "elicitation"
    other.task, other.calls = user.task, {question.tool_call_id: question}
    assert await other.answer("yes") == StateChange(TaskState.COMPLETED)
    assert "accept {'agree': True}" in other.said("agree")
    assert logged(place) == ["agree"]
    await other.agent.aclose()


async def test_cancelling_the_task_cancels_the_call_that_asks(shared: SharedServe) -> None:
    user = UserPrompts(shared.agent, shared.workspace("cancelled"))
    await user.prompt("agree")
    assert (await user.agent.cancel(user.task)).state is TaskState.CANCELED
    await eventually_async(lambda: "cancelled" in logged(user.workspace))
    await user.take(await user.agent.follow(user.task, 0))
    assert {call.status for call in user.calls.values()} == {ToolCallStatus.CANCELLED}


async def test_a_question_that_the_server_takes_back_is_closed_and_the_turn_goes_on(user: UserPrompts) -> None:
    assert await user.prompt("impatient") == StateChange(TaskState.INPUT_REQUIRED)
    (user.workspace / "asking.late").touch()
    await user.has_ended()
    await user.take(await user.agent.follow(user.task, 0))
    assert user.call("elicitation").status is ToolCallStatus.CANCELLED
    assert user.said("impatient") == "too late"


def askers(shared: SharedServe, workspace: Path) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for child in psutil.Process(shared.program.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # ended meanwhile
            if SERVER.name in " ".join(child.cmdline()[:2]) and child.cwd() == str(workspace):
                found.append(child)
    return found


async def test_a_server_that_dies_with_an_open_question_ends_the_call_not_the_turn(
    shared: SharedServe,
) -> None:
    user = UserPrompts(shared.agent, shared.workspace("killed"))
    await user.prompt("agree")
    [asker] = askers(shared, user.workspace)
    asker.kill()
    await user.has_ended()
    await user.take(await user.agent.follow(user.task, 0))
    assert user.call("elicitation").status is ToolCallStatus.CANCELLED
    assert user.call("agree").status is ToolCallStatus.FAILED
    assert logged(user.workspace).count("agree") == 1


async def test_after_kill_9_the_next_server_closes_the_question_and_repeats_no_call(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, asking())
    async with (
        serve_program(tmp_path, workspace, script=SCRIPT, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        user = UserPrompts(agent, workspace)
        await user.prompt("agree")
        await server.end(signal.SIGKILL)
    async with (
        serve_program(tmp_path, workspace, script=SCRIPT, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        again = UserPrompts(agent, workspace)
        again.task, again.calls = user.task, user.calls
        await again.has_ended()  # though nobody answers
        assert await again.take(await again.agent.follow(again.task, 0)) == StateChange(TaskState.COMPLETED)
        interrupted = again.call("agree")
        assert interrupted.error is not None
        assert interrupted.error.type == "interrupted"
        assert again.call("elicitation").status is ToolCallStatus.CANCELLED
        assert "was not passed on" in again.said("elicitation")
    assert logged(workspace).count("agree") == 1


@pytest.mark.parametrize("option", first_of(["accept", "decline", "cancel"]))
async def test_a_user_is_shown_where_a_page_leads_before_it_is_visited(user: UserPrompts, option: str) -> None:
    await user.prompt("page")
    assert f"  {PAGE}\nIts host: 127.0.0.1:9\n" in user.shown
    assert await user.answer(option) == StateChange(TaskState.COMPLETED)
    assert user.said("page") == option


async def test_a_page_that_hides_where_it_leads_is_declined_and_noted(user: UserPrompts) -> None:
    assert await user.prompt("hidden page") == StateChange(TaskState.COMPLETED)
    assert user.said("page") == "decline"


@pytest.mark.parametrize("completes", [False, True])
async def test_a_call_that_needs_a_page_is_repeated_when_the_user_or_the_server_is_done(
    user: UserPrompts, completes: bool
) -> None:
    await user.prompt("needs page that completes" if completes else "needs page")
    assert PAGE in user.shown
    assert await user.answer("accept") == StateChange(TaskState.INPUT_REQUIRED)
    assert "is called again when you are done" in user.shown
    if completes:
        (user.workspace / "asking.visited").touch()
        await user.has_ended()
        await user.take(await user.agent.follow(user.task, 0))
    else:
        assert await user.answer("accept") == StateChange(TaskState.COMPLETED)
    assert user.said("needs_page") == "after the page"
    assert logged(user.workspace) == ["needs_page"] * 2


async def test_a_call_whose_page_nobody_visits_fails_and_is_not_made_again(user: UserPrompts) -> None:
    await user.prompt("needs page")
    assert await user.answer("decline") == StateChange(TaskState.COMPLETED)
    assert "needs a page that was not visited" in user.said("needs_page")
    assert logged(user.workspace) == ["needs_page"]


async def test_the_revision_of_2026_asks_for_all_at_once_and_is_answered_one_by_one(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, asking("modern"))
    async with (
        serve_program(tmp_path, workspace, script=SCRIPT, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        user = UserPrompts(agent, workspace)
        assert await user.prompt("ask first") == StateChange(TaskState.INPUT_REQUIRED)
        answers = {"elicitation": "yes", "sampling": "proceed_once"}
        first = user.question.tool_name
        assert await user.answer(answers.pop(first)) == StateChange(TaskState.INPUT_REQUIRED)
        assert await user.answer(answers.pop(user.question.tool_name)) == StateChange(TaskState.COMPLETED)
        assert user.said("ask_first") == f"accept {{'agree': True}} / a bird / {workspace.resolve().as_uri()}"
        assert logged(workspace) == ["ask_first", "answered"]
