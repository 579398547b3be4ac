"""Servers that ask during a call, in ``isthmus serve``: forms, the model, pages; answers over A2A."""

import json
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import PromptMessage, Turn
from isthmus.development_tool import ModifiedFileDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.encoding.jsonc import parse
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS
from support.loaded_program import LoadedProgram
from support.mcp_hosting import everything_over, write_servers
from support.programs import node_package, require
from support.serve_program import serve_program
from support.shared_serve import SharedServe, shared_serve
from support.turns import events_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

ASKS = """
name: asks
scenarios:
  - prompt: 'form'
    replies:
      - call: {name: trigger-elicitation-request, arguments: {}}
      - text: done
  - prompt: 'Resource trigger-sampling-request'
    replies:
      - text: 'forty-two'
  - prompt: 'sample twice'
    replies:
      - call: {name: trigger-sampling-request, arguments: {prompt: 'the answer?', maxTokens: 17}}
      - call: {name: trigger-sampling-request, arguments: {prompt: 'the answer again?', maxTokens: 17}}
      - text: done
  - prompt: 'sample'
    replies:
      - call: {name: trigger-sampling-request, arguments: {prompt: 'the answer?', maxTokens: 17}}
      - text: done
  - prompt: 'both'
    replies:
      - call: {name: trigger-elicitation-request, arguments: {}}
      - call: {name: trigger-sampling-request, arguments: {prompt: 'the answer?', maxTokens: 17}}
      - text: done
  - prompt: 'roots'
    replies:
      - call: {name: get-roots-list, arguments: {}}
      - text: done
"""


def everything() -> dict[str, Any]:
    script = node_package("@modelcontextprotocol/server-everything") / "dist" / "index.js"
    return {"command": str(require("node")), "args": [str(script), "stdio"], "trust": True}


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[SharedServe]:
    folder = tmp_path_factory.mktemp("serve")
    servers = {"everything": everything()}
    async with shared_serve(folder, ASKS, "--allow-client-mcp", servers=servers) as serve:
        yield serve


@pytest.fixture
def agent(shared: SharedServe) -> RemoteAgent:
    return shared.agent


@pytest.fixture
def place(shared: SharedServe) -> Path:
    return shared.workspace("workspace")


def calls_of(events: list[AgentEvent]) -> dict[str, ToolCall]:
    found = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)]
    return {call.tool_name: call for call in found}


async def answer(
    agent: RemoteAgent, turn: Turn, call: ToolCall, option: str, content: str | None = None
) -> list[AgentEvent]:
    details = None if content is None else ModifiedFileDetails(content)
    confirmation = [ToolCallConfirmation(call.tool_call_id, option, details)]
    return await events_of(await agent.answer(turn.snapshot.task_id, confirmation, answered_by="test"))


async def ask(agent: RemoteAgent, workspace: Path, text: str) -> Turn:
    return await agent.prompt(PromptMessage(text, settings={"workspace_path": str(workspace)}))


def raw_result(call: ToolCall) -> dict[str, Any]:
    assert call.output is not None
    assert call.output.text is not None
    return json.loads(call.output.text.partition("Raw result: ")[2])


async def test_a_form_is_filled_in_by_an_a2a_client_and_asked_anew_until_it_fits(
    agent: RemoteAgent, place: Path
) -> None:
    turn = await ask(agent, place, "form")
    events = await events_of(turn)
    assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
    calls = calls_of(events)
    assert calls["trigger-elicitation-request"].status is ToolCallStatus.EXECUTING
    question = calls["elicitation"]
    assert question.confirmation_request is not None
    document = question.confirmation_request.file_edit_details
    assert document is not None
    assert document.file_name == "everything-request.json"
    assert [option.id for option in question.confirmation_request.options] == ["accept", "decline", "cancel"]
    filled = parse(document.new_content)
    assert filled["name"] is None
    assert filled["integer"] == 42
    events = await answer(agent, turn, question, "accept", json.dumps({**filled, "name": "Ada", "integer": 101}))
    assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
    again = calls_of(events)["elicitation"]
    assert again.tool_call_id != question.tool_call_id
    assert again.confirmation_request is not None
    assert again.confirmation_request.file_edit_details is not None
    assert "NOT ACCEPTED: integer: 101" in again.confirmation_request.file_edit_details.new_content
    mine = {**filled, "name": "Ada", "email": "ada@example.org", "titledMultipleSelectEnum": ["Tuna", "fish-3"]}
    events = await answer(agent, turn, again, "accept", json.dumps(mine))
    assert events[-1] == StateChange(TaskState.COMPLETED)
    done = calls_of(events)["trigger-elicitation-request"]
    assert done.status is ToolCallStatus.SUCCEEDED
    told = raw_result(done)
    assert told["action"] == "accept"
    assert told["content"]["name"] == "Ada"
    assert told["content"]["titledMultipleSelectEnum"] == ["fish-1", "fish-3"]
    assert "birthdate" not in told["content"]
    assert not list(place.glob("*request*"))


@pytest.mark.parametrize("option", ["decline", "cancel"])
async def test_a_form_that_is_not_filled_in_ends_no_call(agent: RemoteAgent, place: Path, option: str) -> None:
    turn = await ask(agent, place, "form")
    question = calls_of(await events_of(turn))["elicitation"]
    events = await answer(agent, turn, question, option)
    assert events[-1] == StateChange(TaskState.COMPLETED)
    calls = calls_of(events)
    assert calls["elicitation"].status is ToolCallStatus.CANCELLED
    assert raw_result(calls["trigger-elicitation-request"])["action"] == option


async def test_the_model_is_asked_with_consent_and_after_always_without(agent: RemoteAgent, place: Path) -> None:
    turn = await ask(agent, place, "sample twice")
    question = calls_of(await events_of(turn))["sampling"]
    assert question.confirmation_request is not None
    assert question.confirmation_request.generic_details is not None
    shown = question.confirmation_request.generic_details.description
    assert "> You are a helpful test server." in shown
    assert "> Resource trigger-sampling-request context: the answer?" in shown
    assert "at most 17 tokens" in shown
    events = await answer(agent, turn, question, "proceed_always_sampling")
    assert events[-1] == StateChange(TaskState.COMPLETED)
    questions = [
        event.tool_call
        for event in events
        if isinstance(event, ToolCallUpdate) and event.tool_call.tool_name == "sampling"
    ]
    assert [call.status for call in questions[-3:]] == [
        ToolCallStatus.PENDING, ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED,
    ]  # fmt: skip
    assert all(call.confirmation_request is None for call in questions)
    done = calls_of(events)["trigger-sampling-request"]
    assert done.output is not None
    assert "forty-two" in (done.output.text or "")


async def test_a_server_is_told_that_the_user_rejected_sampling(agent: RemoteAgent, place: Path) -> None:
    turn = await ask(agent, place, "sample")
    question = calls_of(await events_of(turn))["sampling"]
    done = calls_of(await answer(agent, turn, question, "cancel"))["trigger-sampling-request"]
    said = (done.error.message if done.error is not None else "") + str(done.output)
    assert "the user rejected the sampling request" in said


async def test_the_workspace_is_the_root(agent: RemoteAgent, place: Path) -> None:
    done = calls_of(await events_of(await ask(agent, place, "roots")))["get-roots-list"]
    assert done.output is not None
    assert place.resolve().as_uri() in (done.output.text or "")


async def filled_in(agent: RemoteAgent, workspace: Path, name: str) -> str:
    """Return the name that the server has got from a form filled in with ``name``."""
    turn = await ask(agent, workspace, "form")
    question = calls_of(await events_of(turn))["elicitation"]
    assert question.confirmation_request is not None
    assert question.confirmation_request.file_edit_details is not None
    filled = parse(question.confirmation_request.file_edit_details.new_content)
    events = await answer(agent, turn, question, "accept", json.dumps({**filled, "name": name}))
    return raw_result(calls_of(events)["trigger-elicitation-request"])["content"]["name"]


async def test_over_http_each_session_is_asked_what_its_own_call_wants_to_know(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with everything_over("streamableHttp") as port:
        url = f"http://127.0.0.1:{port}/mcp"
        write_servers(isolated_folders.home, {"everything": {"httpUrl": url, "trust": True}})
        async with (
            serve_program(tmp_path, workspace, script=ASKS, loaded=loaded_isthmus) as server,
            server.client() as agent,
        ):
            first = await ask(agent, workspace, "form")
            question = calls_of(await events_of(first))["elicitation"]
            assert await filled_in(agent, workspace, "Grace") == "Grace"
            calls = calls_of(await answer(agent, first, question, "decline"))
            assert raw_result(calls["trigger-elicitation-request"])["action"] == "decline"


async def test_on_a_pipe_a_question_of_one_of_two_sessions_is_declined_and_noted(
    agent: RemoteAgent, place: Path
) -> None:
    first = await ask(agent, place, "form")
    question = calls_of(await events_of(first))["elicitation"]
    events = await events_of(await ask(agent, place, "form"))
    assert raw_result(calls_of(events)["trigger-elicitation-request"])["action"] == "decline"
    calls = calls_of(await answer(agent, first, question, "cancel"))
    assert raw_result(calls["trigger-elicitation-request"])["action"] == "cancel"
    assert await filled_in(agent, place, "Ada") == "Ada"


async def test_a_client_of_gemini_clis_own_server_edits_the_document(
    shared: SharedServe, agent: RemoteAgent, place: Path
) -> None:
    headers = {"Authorization": f"Bearer {shared.program.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:

        async def send(message: dict[str, Any]) -> dict[str, Any]:
            body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
            response = await http.post(shared.program.url, json=body)
            assert response.status_code == 200, response.text
            return response.json()["result"]

        settings = {"kind": "agent-settings", "workspacePath": str(place)}
        task = await send(
            {
                "kind": "message",
                "role": "user",
                "messageId": "1",
                "parts": [{"kind": "text", "text": "form"}],
                "metadata": {"coderAgent": settings},
            }
        )
        (call,) = [part["data"] for part in task["status"]["message"]["parts"]]
        assert (call["status"], call["request"]["name"]) == ("awaiting_approval", "elicitation")
        document = call["confirmationDetails"]["newContent"]
        assert call["confirmationDetails"]["type"] == "edit"
        filled = json.dumps({**parse(document), "name": "Linus"})
        data = {"callId": call["request"]["callId"], "outcome": "proceed_once", "newContent": filled}
        done = await send(
            {
                "kind": "message",
                "role": "user",
                "messageId": "2",
                "taskId": task["id"],
                "contextId": task["contextId"],
                "parts": [{"kind": "data", "data": data}],
            }
        )
        assert done["status"]["state"] == "input-required"
    calls = calls_of(await events_of(await agent.follow(task["id"], 0)))
    assert raw_result(calls["trigger-elicitation-request"])["content"]["name"] == "Linus"


@pytest.mark.parametrize(
    ("arguments", "model_said"),
    [
        ([], "needs a user's permission, and no user can be asked here"),
        (["--approval-mode", "yolo"], "forty-two"),
    ],
)
def test_without_a_user_forms_are_declined_and_yolo_mode_alone_asks_the_model(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, arguments: list[str], model_said: str
) -> None:
    write_servers(isolated_folders.home, {"everything": everything()})
    (tmp_path / "script.yaml").write_text(ASKS, encoding="utf-8")
    ended = subprocess.run(
        [
            *(*ISTHMUS, "-p", "both", "-o", "stream-json", "-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide"),
            *("--data-dir", str(tmp_path / "data"), *arguments),
        ],
        cwd=workspace, capture_output=True, text=True, encoding="utf-8", timeout=100, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    told = " ".join(str(line.get("output") or line.get("error")) for line in lines if line["type"] == "tool_result")
    assert '"action": "decline"' in told
    assert model_said in told


async def test_a_clients_own_server_stays_while_its_call_waits_and_is_left_afterwards(
    shared: SharedServe, agent: RemoteAgent, place: Path
) -> None:
    with everything_over("streamableHttp") as port:
        theirs = {"name": "theirs", "url": f"http://127.0.0.1:{port}/mcp"}
        settings = {"workspace_path": str(place), "mcp_servers": [theirs]}
        turn = await agent.prompt(PromptMessage("form", settings=settings))
        permission = calls_of(await events_of(turn))["trigger-elicitation-request"]
        question = calls_of(await answer(agent, turn, permission, "proceed_once"))["elicitation"]
        calls = calls_of(await answer(agent, turn, question, "accept", '{"name": "Ada"}'))
        assert raw_result(calls["trigger-elicitation-request"])["content"] == {"name": "Ada"}
        process = psutil.Process(shared.program.process.pid)

        def has_left() -> bool:
            return all(item.raddr.port != port for item in process.net_connections() if item.raddr)

        await eventually_async(has_left)
