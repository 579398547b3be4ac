"""Independent A2A clients against ``isthmus serve``: a prompt, a confirmation, and completion."""

import asyncio
import json
import os
import signal
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientHTTPError, A2AClientJSONRPCError
from a2a.types import (
    DataPart,
    GetTaskPushNotificationConfigParams,
    Message,
    Part,
    PushNotificationConfig,
    Role,
    Task,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
    TaskState,
    TaskStatusUpdateEvent,
    TextPart,
    TransportProtocol,
)

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from support.a2a_serving import TOKEN, rpc, serving
from support.loaded_program import LoadedProgram
from support.memory_agent import MemoryAgent, Wait
from support.programs import NODE_PEERS, node_package, require
from support.serve_program import EDIT_SCRIPT, ServeProgram, serve_program
from support.shared_serve import SharedServe, shared_serve

pytestmark = pytest.mark.anyio

TRANSPORTS = (TransportProtocol.jsonrpc, TransportProtocol.http_json)


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SharedServe]:
    """Start a server for all tests that do not kill it."""
    async with shared_serve(tmp_path_factory.mktemp("served"), EDIT_SCRIPT) as running:
        yield running


@pytest.fixture
def program(served: SharedServe) -> ServeProgram:
    return served.program


@pytest.fixture
def workspace(served: SharedServe) -> Path:
    """Return a folder of the test's own where the shared server works."""
    return served.workspace(str(uuid.uuid4()))


@pytest.fixture
async def http(program: ServeProgram) -> AsyncGenerator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {program.token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as client:
        yield client


async def client_of(
    url: str, http: httpx.AsyncClient, transport: TransportProtocol, *, streaming: bool = True
) -> Client:
    """Return the SDK's client over a transport that the card offers."""
    card = await A2ACardResolver(http, url).get_agent_card()
    assert card.capabilities.extensions is not None
    assert [extension.uri for extension in card.capabilities.extensions] == [URI]
    config = ClientConfig(httpx_client=http, streaming=streaming, supported_transports=[transport])
    return ClientFactory(config).create(card)


def words(text: str, **more: Any) -> Message:
    """Return a message of text, with an id of its own."""
    return Message(role=Role.user, message_id=str(uuid.uuid4()), parts=[Part(root=TextPart(text=text))], **more)


def data_of(message: Message | None) -> dict[str, Any]:
    """Return the data of a message's last part."""
    assert message is not None
    part = message.parts[-1].root
    assert isinstance(part, DataPart)
    return part.data


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_silent_task_does_not_break_the_python_sdk(workspace: Path, transport: TransportProtocol) -> None:
    gate = asyncio.Event()
    agent = MemoryAgent(lambda _: (Wait(gate),))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        serving(agent, ServerOptions(TOKEN, keep_alive=0.02)) as server,
        httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
    ):
        client = await client_of(server.url, http, transport)
        first = words("Wait", metadata={URI: {"workspace_path": str(workspace)}})
        started = client.send_message(first, extensions=[URI])
        begun = await anext(started)
        assert isinstance(begun, tuple)
        again = client.resubscribe(TaskIdParams(id=begun[0].id), extensions=[URI])
        await anext(again)
        # A third stream of the same server, begun later, tells that the other two were silent for as long.
        params = {"id": begun[0].id}
        async with server.http.stream("POST", server.url, json=rpc("tasks/resubscribe", params)) as third:
            lines = third.aiter_lines()
            for _ in range(3):
                while await anext(lines) != ": keep-alive":
                    pass
        gate.set()
        last = [[item async for item in stream][-1] for stream in (started, again)]
    assert [item[0].status.state for item in last if isinstance(item, tuple)] == [TaskState.completed] * 2


@pytest.mark.requirement("A2A-022", "A2A-139", "A2A-096", "A2A-106")
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_python_sdk_drives_a_prompt_a_confirmation_and_completion(
    program: ServeProgram, http: httpx.AsyncClient, workspace: Path, transport: TransportProtocol
) -> None:
    client = await client_of(program.url, http, transport)
    first = words("Write a greeting", metadata={URI: {"workspace_path": str(workspace)}})
    updates: list[TaskStatusUpdateEvent] = []
    async for item in client.send_message(first, extensions=[URI]):
        assert isinstance(item, tuple)
        task, update = item
        if isinstance(update, TaskStatusUpdateEvent):
            updates.append(update)
    assert [update.metadata[URI]["kind"] for update in updates if update.metadata] == [
        "STATE_CHANGE",
        "THOUGHT",
        "TOOL_CALL_UPDATE",
        "STATE_CHANGE",
    ]
    assert (updates[-1].status.state, updates[-1].final) == (TaskState.input_required, True)
    question = data_of(updates[-1].status.message)
    assert question["status"] == "PENDING"
    assert question["confirmation_request"]["file_edit_details"]["new_content"] == "hello\n"
    assert not (workspace / "greeting.txt").exists()

    chosen = {
        "tool_call_id": question["tool_call_id"],
        "selected_option_id": question["confirmation_request"]["options"][0]["id"],
        "file_details": {"new_content": "changed\n"},
    }
    reply = Message(
        role=Role.user,
        message_id="answer",
        task_id=updates[0].task_id,
        context_id=updates[0].context_id,
        parts=[Part(root=DataPart(data=chosen))],
    )
    final: Task | None = None
    async for item in client.send_message(reply, extensions=[URI]):
        assert isinstance(item, tuple)
        final, update = item
        if isinstance(update, TaskStatusUpdateEvent):
            updates.append(update)
    assert final is not None
    assert (updates[-1].status.state, updates[-1].final) == (TaskState.completed, True)
    assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "changed\n"

    task = await client.get_task(TaskQueryParams(id=updates[0].task_id), extensions=[URI])
    assert task.status.message is not None
    assert isinstance(task.status.message.parts[0].root, TextPart)
    assert task.status.message.parts[0].root.text == "I wrote the greeting."
    replayed = [item async for item in client.resubscribe(TaskIdParams(id=task.id), extensions=[URI])]
    assert replayed[0][0].status.state is TaskState.completed


async def test_the_python_sdk_drives_it_without_the_extension(program: ServeProgram, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, program.url).get_agent_card()
    client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
    (item,) = [item async for item in client.send_message(words("good morning"))]
    assert isinstance(item, tuple)
    task = item[0]
    assert (task.status.state, task.status.message) == (TaskState.completed, None)
    assert task.artifacts is not None
    assert [part.root for artifact in task.artifacts for part in artifact.parts] == [
        TextPart(text="You said: good morning")
    ]


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_python_sdk_cancels_and_configures_push_notifications(
    program: ServeProgram, http: httpx.AsyncClient, workspace: Path, transport: TransportProtocol
) -> None:
    client = await client_of(program.url, http, transport, streaming=False)
    first = words("Write a greeting", metadata={URI: {"workspace_path": str(workspace)}})
    (item,) = [item async for item in client.send_message(first, extensions=[URI])]
    assert isinstance(item, tuple)
    task_id = item[0].id
    assert (await client.cancel_task(TaskIdParams(id=task_id))).status.state is TaskState.canceled
    target = PushNotificationConfig(id="p", url="https://1.1.1.1/hook", token="secret")
    config = TaskPushNotificationConfig(task_id=task_id, push_notification_config=target)
    assert await client.set_task_callback(config) == config
    asked = GetTaskPushNotificationConfigParams(id=task_id, push_notification_config_id="p")
    assert await client.get_task_callback(asked) == config
    extended = await client.get_card()
    assert extended.capabilities.extensions is not None
    assert "commands" in (extended.capabilities.extensions[0].params or {})


async def test_the_python_sdk_is_told_the_exact_error(program: ServeProgram, http: httpx.AsyncClient) -> None:
    card = await A2ACardResolver(http, program.url).get_agent_card()
    client = ClientFactory(ClientConfig(httpx_client=http)).create(card)
    with pytest.raises(A2AClientJSONRPCError) as unknown:
        await client.get_task(TaskQueryParams(id="unknown"))
    assert unknown.value.error.code == -32001
    with pytest.raises(A2AClientJSONRPCError) as refused:
        [item async for item in client.send_message(words("hello"), extensions=[URI])]
    assert refused.value.error.code == -32602
    assert "workspace_path" in str(refused.value.error.message)


async def test_the_python_sdk_is_told_the_http_status_of_an_error(
    program: ServeProgram, http: httpx.AsyncClient
) -> None:
    client = await client_of(program.url, http, TransportProtocol.http_json)
    with pytest.raises(A2AClientHTTPError) as unknown:
        await client.get_task(TaskQueryParams(id="unknown"))
    assert unknown.value.status_code == 404
    with pytest.raises(A2AClientHTTPError) as refused:
        [item async for item in client.send_message(words("hello"), extensions=[URI])]
    assert refused.value.status_code == 422


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_javascript_sdk_drives_a_prompt_a_confirmation_and_completion(
    program: ServeProgram, workspace: Path, transport: TransportProtocol
) -> None:
    node_package("@a2a-js/sdk")
    process = await asyncio.create_subprocess_exec(
        require("node"),
        *("drive_a2a.mjs", program.url, str(workspace), URI, transport.value),
        cwd=NODE_PEERS,
        env={**os.environ, "ISTHMUS_A2A_TOKEN": program.token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    found = json.loads(out)
    assert found["name"] == "Isthmus"
    assert (found["asked"][0]["kind"], found["asked"][0]["status"]["state"]) == ("task", "submitted")
    assert (found["asked"][-1]["status"]["state"], found["asked"][-1]["final"]) == ("input-required", True)
    kinds = [event["metadata"][URI]["kind"] for event in found["answered"]]
    assert kinds == ["TOOL_CALL_UPDATE", "TOOL_CALL_UPDATE", "TEXT_CONTENT", "STATE_CHANGE"]
    assert (found["answered"][-1]["status"]["state"], found["answered"][-1]["final"]) == ("completed", True)
    assert found["task"]["status"]["message"]["parts"][0]["text"] == "I wrote the greeting."
    assert found["refused"]["code"] == -32001
    assert found["replayed"][0]["status"]["state"] == "completed"
    kept = {"taskId": found["task"]["id"], "pushNotificationConfig": {"id": "p", "url": "https://1.1.1.1/hook"}}
    assert found["pushes"] == [kept, kept, [kept], None]
    assert found["canceled"]["status"]["state"] == "canceled"
    assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "changed by the user\n"


async def test_an_answer_after_kill_9_from_a_client_that_saw_no_stream_completes_the_task(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as program:
        headers = {"Authorization": f"Bearer {program.token}"}
        async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
            card = await A2ACardResolver(http, program.url).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
            first = words("Write a greeting", metadata={URI: {"workspace_path": str(workspace)}})
            (item,) = [item async for item in client.send_message(first, extensions=[URI])]
            assert isinstance(item, tuple)
            task_id = item[0].id
        assert await program.end(signal.SIGKILL) == -signal.SIGKILL
    async with serve_program(tmp_path, workspace, loaded=loaded_isthmus) as program:
        headers = {"Authorization": f"Bearer {program.token}"}
        async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
            card = await A2ACardResolver(http, program.url).get_agent_card()
            client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
            task = await client.get_task(TaskQueryParams(id=task_id), extensions=[URI])
            question = data_of(task.status.message)
            chosen = {"tool_call_id": question["tool_call_id"], "selected_option_id": "proceed_once"}
            reply = Message(role=Role.user, message_id="a", task_id=task_id, parts=[Part(root=DataPart(data=chosen))])
            (item,) = [item async for item in client.send_message(reply, extensions=[URI])]
            assert isinstance(item, tuple)
            assert item[0].status.state is TaskState.completed
    assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
