"""LangGraph and pydantic-ai agents below paths of an application with users of its own; images, and kill -9 between."""

import asyncio
import base64
import json
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import FilePart, FileWithBytes, Message, Part, Role, Task, TaskStatusUpdateEvent, TextPart

from isthmus.a2a import RemoteAgent
from isthmus.a2a.protocol.extension import URI
from isthmus.client import Delivery, PromptMessage
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.events import ArtifactUpdate, TaskState, ToolCallUpdate
from support.isolation import isolate
from support.mounted_program import MountedProgram, mounted_program
from support.openai_wire import OpenAIWire
from support.remote_agents import remote_agent
from support.scripted_wire import Call, Reply, Say
from support.turns import SECONDS, events_of
from support.wire_server import Hold, WireRequest

pytestmark = [pytest.mark.anyio, pytest.mark.shares_connections]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DATA_URL = f"data:image/png;base64,{PNG}"
GRAPH, NOTES = "/agents/graph", "/agents/pydantic"
SLOW = "Take your time."
ONCE = "Remember this, too."


class Provider:
    """The model of both agents; one reply to ``SLOW`` and one to a call of ``ONCE`` never end."""

    def __init__(self) -> None:
        self.hold = Hold()
        self._held: set[str] = set()

    def _holds(self, text: str, request: WireRequest) -> bool:
        """Return whether this is the first request with the text."""
        is_first = text in request.body.decode() and text not in self._held
        self._held |= {text} if is_first else set()
        return is_first

    def __call__(self, request: WireRequest) -> Reply:
        if request.json.get("tools"):
            if request.json["messages"][-1]["role"] == "tool":
                return Reply.of(Say("Noted."), **({"hold": self.hold} if self._holds(ONCE, request) else {}))
            text = "call ann" if ONCE in request.body.decode() else "buy <milk>"
            return Reply.of(Call("save_note", {"text": text}, id="call_1"))
        if self._holds(SLOW, request):
            return Reply.of(Say("A Re", "d Dot"), hold=self.hold, hold_after=2)
        return Reply.of(Say("A Red", " Dot"))


@dataclass(frozen=True, slots=True)
class AfterKill:
    """The application after its restart, and the ids of tasks that clients began before."""

    program: MountedProgram
    wire: OpenAIWire
    data: Path
    titled: str
    cut_off: str
    noted: str
    saved: str

    def saved_notes(self) -> list[str]:
        """Return the lines of all notes."""
        return (self.data / "notes" / "notes.txt").read_text(encoding="utf-8").splitlines()

    def asked_of_model(self, text: str) -> Sequence[Any]:
        """Return the model's requests with this text in a message of the user."""
        found = [request.json for request in self.wire.model_requests]
        return [body for body in found if text in json.dumps([m for m in body["messages"] if m["role"] == "user"])]


async def official(http: httpx.AsyncClient, path: str) -> Client:
    """Return the official client of the agent at a path."""
    card = await A2ACardResolver(http, f"{http.base_url}".rstrip("/") + path).get_agent_card()
    assert "image/png" in card.default_input_modes
    assert "image/svg+xml" in card.default_output_modes
    return ClientFactory(ClientConfig(httpx_client=http)).create(card)


def picture(text: str) -> Message:
    """Return a message of a text and a picture."""
    file = FileWithBytes(bytes=PNG, mime_type="image/png", name="dot.png")
    parts = [Part(root=TextPart(text=text)), Part(root=FilePart(file=file))]
    return Message(role=Role.user, message_id=str(uuid.uuid4()), parts=parts)


async def sent(
    client: Client, message: Message, until: str = "nothing", extensions: Sequence[str] | None = None
) -> Task:
    """Send it, and read until the stream has a text or ends; return the task's state then."""
    task: Task | None = None
    async for item in client.send_message(message, extensions=list(extensions) if extensions else None):
        assert isinstance(item, tuple)
        task, update = item
        if isinstance(update, TaskStatusUpdateEvent) and until in update.model_dump_json():
            break
    assert task is not None
    return task


async def saves(agent: RemoteAgent, task_id: str) -> None:
    """Allow the waiting call, and read until it has ended."""
    (call,) = (await agent.get(task_id)).pending
    answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
    turn = await agent.answer(task_id, answer, answered_by="test")
    async with aclosing(cast("AsyncGenerator[Delivery]", turn.deliveries)) as deliveries, asyncio.timeout(SECONDS):
        async for delivery in deliveries:
            match delivery.event:
                case ToolCallUpdate(call) if call.status is ToolCallStatus.SUCCEEDED:
                    return
                case _:
                    pass
    raise AssertionError("the call did not come to its end")


@pytest.fixture(scope="module")
async def after_kill(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[AfterKill]:
    folder, provider = tmp_path_factory.mktemp("mounted"), Provider()
    async with AsyncExitStack() as stack:
        stack.enter_context(isolate(stack.enter_context(pytest.MonkeyPatch.context())))
        wire = stack.enter_context(OpenAIWire(provider))
        stack.callback(provider.hold.release)
        environment = {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": wire.base_url}
        async with mounted_program(folder, environment) as program, program.user("ann") as http:
            graph, notes = await official(http, GRAPH), await official(http, NOTES)
            titled = await sent(graph, picture("For the wall."), "input-required")
            noted = await sent(notes, picture("Remember this."), "input-required")
            saved = await sent(notes, picture(ONCE), "input-required")
            async with remote_agent(program.url + NOTES, http.cookies["session"]) as agent:
                await saves(agent, saved.id)
            cut_off = await sent(graph, picture(SLOW), "A Re", [URI])
            await program.kill()
        program = await stack.enter_async_context(mounted_program(folder, environment))
        yield AfterKill(program, wire, folder / "data", titled.id, cut_off.id, noted.id, saved.id)


@pytest.fixture
async def http(after_kill: AfterKill) -> AsyncGenerator[httpx.AsyncClient]:
    async with after_kill.program.user("ann") as client:
        yield client


def another_client(after_kill: AfterKill, http: httpx.AsyncClient, path: str) -> Any:
    """Return a client of Isthmus, as ann too: it sends the session as a bearer token."""
    return remote_agent(after_kill.program.url + path, http.cookies["session"])


def svg_of(artifacts: Sequence[ArtifactUpdate]) -> str:
    """Return the one picture among the artifacts."""
    ((part,),) = (artifact.parts for artifact in artifacts)
    assert (part.media_type, part.filename) == ("image/svg+xml", "card.svg")
    assert part.raw is not None
    return base64.b64decode(part.raw).decode()


async def waiting(agent: RemoteAgent, task_id: str) -> str:
    """Return the question of a waiting task."""
    task = await agent.get(task_id)
    assert task.state is TaskState.INPUT_REQUIRED
    return task.history[-1].text


async def test_langgraph_takes_the_answer_of_another_client_where_it_was_interrupted(
    after_kill: AfterKill, http: httpx.AsyncClient
) -> None:
    async with another_client(after_kill, http, GRAPH) as agent:
        assert await waiting(agent, after_kill.titled) == "Shall the title be 'A Red Dot'? Say yes, or another title."
        events = await events_of(await agent.prompt(PromptMessage("Mars & Co", task_id=after_kill.titled)))
        task = await agent.get(after_kill.titled)
    assert task.state is TaskState.COMPLETED
    svg = svg_of([event for event in events if isinstance(event, ArtifactUpdate)])
    assert svg == svg_of(task.artifacts)
    assert "Mars &amp; Co</text>" in svg
    assert f'<image href="{DATA_URL}"' in svg
    (asked,) = after_kill.asked_of_model("For the wall.")  # and not again after the answer
    assert asked["messages"][1]["content"][1] == {"type": "image_url", "image_url": {"url": DATA_URL}}


async def test_pydantic_ai_runs_the_allowed_tool_once_and_the_note_comes_back_as_an_image(
    after_kill: AfterKill, http: httpx.AsyncClient
) -> None:
    async with another_client(after_kill, http, NOTES) as agent:
        (call,) = (await agent.get(after_kill.noted)).pending
        answer = [ToolCallConfirmation(call.tool_call_id, "proceed_once")]
        await events_of(await agent.answer(after_kill.noted, answer, answered_by="test"))
        task = await agent.get(after_kill.noted)
    assert task.state is TaskState.COMPLETED
    assert "Noted." in [message.text for message in task.history]
    assert after_kill.saved_notes().count("buy <milk>") == 1
    assert "buy &lt;milk&gt;</text>" in svg_of(task.artifacts)
    first, second = after_kill.asked_of_model("Remember this.")
    for body in (first, second):
        images = [part for part in body["messages"][1]["content"] if part["type"] == "image_url"]
        assert [image["image_url"]["url"] for image in images] == [DATA_URL]


async def test_a_killed_pydantic_ai_tells_the_model_a_calls_result_and_never_repeats_it(
    after_kill: AfterKill, http: httpx.AsyncClient
) -> None:
    async with another_client(after_kill, http, NOTES) as agent:
        await events_of(await agent.follow(after_kill.saved, 0))
        task = await agent.get(after_kill.saved)
    assert task.state is TaskState.COMPLETED
    assert after_kill.saved_notes().count("call ann") == 1
    assert "call ann</text>" in svg_of(task.artifacts)
    last = after_kill.asked_of_model(ONCE)[-1]["messages"][-1]
    assert (last["role"], last["tool_call_id"], last["content"]) == ("tool", "call_1", "saved")


async def test_langgraph_that_was_killed_in_a_node_goes_on_by_itself_with_that_node(
    after_kill: AfterKill, http: httpx.AsyncClient
) -> None:
    async with another_client(after_kill, http, GRAPH) as agent:
        await events_of(await agent.follow(after_kill.cut_off, 0))
        assert "'A Red Dot'" in await waiting(agent, after_kill.cut_off)
    client = await official(http, GRAPH)
    answer = Message(
        role=Role.user, message_id="yes", task_id=after_kill.cut_off, parts=[Part(root=TextPart(text="Yes"))]
    )
    last = await sent(client, answer)
    assert last.status.state == "completed"
    ((part,),) = (artifact.parts for artifact in last.artifacts or ())
    assert isinstance(part.root, FilePart)
    assert isinstance(part.root.file, FileWithBytes)
    assert b"A Red Dot</text>" in base64.b64decode(part.root.file.bytes)
    assert len(after_kill.asked_of_model(SLOW)) == 2


async def test_langgraph_may_end_a_task_before_its_graph_begins(after_kill: AfterKill, http: httpx.AsyncClient) -> None:
    words = Message(role=Role.user, message_id="words", parts=[Part(root=TextPart(text="Hello"))])
    task = await sent(await official(http, GRAPH), words)
    assert (task.status.state, task.status.message) == ("completed", None)
    ((part,),) = (artifact.parts for artifact in task.artifacts or ())
    assert part.root == TextPart(text="Send me a picture, please.")


async def test_the_application_keeps_its_pages_and_its_users_see_their_own_tasks_alone(
    after_kill: AfterKill, http: httpx.AsyncClient
) -> None:
    assert (await http.get("/")).text == "Hello, ann"
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": after_kill.titled}}
    assert (await http.post(f"{GRAPH}/", json=body)).json()["result"]["id"] == after_kill.titled
    async with after_kill.program.user("bob") as other:
        assert (await other.post(f"{GRAPH}/", json=body)).json()["error"]["code"] == -32001
    for path in (GRAPH, NOTES):
        async with httpx.AsyncClient(base_url=after_kill.program.url, trust_env=False, timeout=60) as stranger:
            assert (await stranger.post(f"{path}/", json=body)).status_code == 401
            forged = {"Authorization": "Bearer ann.0000"}
            assert (await stranger.post(f"{path}/", json=body, headers=forged)).status_code == 401
