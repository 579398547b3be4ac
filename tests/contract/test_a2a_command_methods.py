"""The methods ``commands/get`` and ``command/execute`` in both versions, over a real socket (extension section 3.3)."""

import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from support.a2a_serving import EXTENSION, RawClient, allow, answer, prompt, serving
from support.command_agent import engine_with_commands
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

V1 = {**EXTENSION, "A2A-Version": "1.0"}
STREAMING = {**EXTENSION, "Accept": "text/event-stream"}


@pytest.fixture
async def server(tmp_path: Path, workspace: Path) -> AsyncIterator[RawClient]:
    async with engine_with_commands(tmp_path, workspace) as engine, serving(engine) as client:
        yield client


def command(*path: str, args: str = "", metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return parameters of command/execute."""
    params: dict[str, Any] = {"command_path": list(path), "args": args}
    return params if metadata is None else {**params, "metadata": metadata}


@pytest.mark.requirement("A2A-107", "A2A-109", "A2A-113", "A2A-116")
@pytest.mark.parametrize("headers", [EXTENSION, {}, V1])
async def test_the_commands_are_listed_as_a_tree(server: RawClient, headers: dict[str, str]) -> None:
    found = await server.result("commands/get", {}, headers)
    assert [(item["name"], item["description"]) for item in found["commands"]] == [
        ("about", "Say what runs here."),
        ("memory", "What the agent is told in every session."),
        ("deploy", "Run the deployment script."),
        ("init", "Write GEMINI.md."),
    ]
    add, show = found["commands"][1]["sub_commands"]
    assert add["arguments"] == [{"name": "fact", "description": "What to remember.", "is_required": True}]
    assert (show["name"], show["arguments"], show["sub_commands"]) == ("show", [], [])


@pytest.mark.requirement("A2A-117", "A2A-118", "A2A-119", "A2A-128")
async def test_an_execution_is_a_task_that_is_told_from_its_first_event(server: RawClient) -> None:
    found = await server.result("command/execute", command("memory", "add", args="tabs, not  spaces"))
    assert found["status"] == "STARTED"
    first, *items = await server.stream("tasks/resubscribe", {"id": found["execution_id"]})
    assert first.result["kind"] == "task"
    assert [(item.kind, item.state) for item in items] == [
        ("STATE_CHANGE", "working"),
        ("THOUGHT", "working"),
        ("TEXT_CONTENT", "working"),
        ("STATE_CHANGE", "completed"),
    ]
    task = await server.result("tasks/get", {"id": found["execution_id"]})
    assert task["status"]["message"]["parts"][0]["text"] == "memory add: tabs, not  spaces"


async def test_the_log_names_the_task_that_a_command_became(
    server: RawClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "isthmus.access")
    found = await server.result("command/execute", command("about"))
    # The log line is written after the response was sent.
    await eventually_async(lambda: any("command/execute" in record.getMessage() for record in caplog.records))
    (line,) = [record.getMessage() for record in caplog.records if "command/execute" in record.getMessage()]
    assert f"task={found['execution_id']}" in line


@pytest.mark.requirement("A2A-121", "A2A-122", "A2A-124", "A2A-131")
async def test_the_response_itself_can_be_the_stream(server: RawClient) -> None:
    first, task, *items = await server.stream("command/execute", command("about"), STREAMING)
    assert first.result["status"] == "STARTED"
    assert first.result["execution_id"] == task.result["id"]
    assert task.result["kind"] == "task"
    assert [item.kind for item in items] == ["STATE_CHANGE", "THOUGHT", "TEXT_CONTENT", "STATE_CHANGE"]
    assert items[2].text == "about: "
    assert (items[-1].state, items[-1].result["final"]) == ("completed", True)


async def test_who_executes_a_command_speaks_the_extension_also_without_its_header(server: RawClient) -> None:
    headers = {"Accept": "text/event-stream"}
    _, _, *items = await server.stream("command/execute", command("about"), headers)
    assert [item.kind for item in items] == ["STATE_CHANGE", "THOUGHT", "TEXT_CONTENT", "STATE_CHANGE"]


async def test_version_1_0_streams_an_execution_in_its_own_form(server: RawClient) -> None:
    headers = {**V1, "Accept": "text/event-stream"}
    first, task, *items = await server.stream("command/execute", command("about"), headers)
    assert task.result["task"]["id"] == first.result["execution_id"]
    assert items[-1].result["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.requirement("A2A-126", "A2A-127", "A2A-129")
@pytest.mark.parametrize(
    ("name", "status", "details"),
    [
        ("deploy", "AWAITING_SHELL_CONFIRMATION", "execute_details"),
        ("init", "AWAITING_ACTION_CONFIRMATION", "generic_details"),
    ],
)
async def test_a_command_that_asks_is_answered_like_any_task(
    server: RawClient, name: str, status: str, details: str
) -> None:
    found = await server.result("command/execute", command(name))
    assert found["status"] == status
    task = await server.result("tasks/get", {"id": found["execution_id"]})
    assert details in task["status"]["message"]["parts"][0]["data"]["confirmation_request"]
    items = await server.stream("message/stream", answer(found["execution_id"], allow()))
    assert [item.data["status"] for item in items[:2]] == ["EXECUTING", "SUCCEEDED"]
    assert items[-1].state == "completed"


@pytest.mark.requirement("A2A-125", "A2A-130")
async def test_an_unknown_command_does_not_start_and_near_ones_are_named(server: RawClient) -> None:
    found = await server.result("command/execute", command("memory", "ad"))
    assert (found["status"], found["execution_id"]) == ("FAILED_TO_START", "")
    assert "/memory add" in found["message"]
    assert (await server.result("isthmus/tasks", {}))["tasks"] == []


async def test_a_command_without_its_argument_does_not_start(server: RawClient) -> None:
    found = await server.result("command/execute", {"commandPath": ["memory", "add"]})
    assert found["status"] == "FAILED_TO_START"
    assert "fact" in found["message"]
    assert (await server.result("command/execute", {"command_path": []}))["status"] == "FAILED_TO_START"


@pytest.mark.requirement("A2A-120")
async def test_metadata_may_name_the_session_the_task_or_the_workspace(tmp_path: Path, workspace: Path) -> None:
    async with engine_with_commands(tmp_path) as engine, serving(engine) as server:
        assert (await server.result("commands/get", {}))["commands"] == []  # the agent's depend on the folder
        nowhere = await server.result("command/execute", command("about"))
        assert nowhere["status"] == "FAILED_TO_START"
        assert "workspace_path" in nowhere["message"]
        first = await server.result(
            "command/execute", command("about", metadata={URI: {"workspace_path": str(workspace)}})
        )
        task = await server.result("tasks/get", {"id": first["execution_id"]})
        for metadata in (
            {"contextId": task["contextId"]},
            {"taskId": task["id"]},
            {URI: {"context_id": task["contextId"]}},
        ):
            again = await server.result("command/execute", command("about", metadata=metadata))
            assert again["status"] == "STARTED", metadata
            other = await server.result("tasks/get", {"id": again["execution_id"]})
            assert other["contextId"] == task["contextId"]
            assert await server.result("commands/get", {"metadata": metadata})
        missing = {URI: {"workspace_path": "/no/such"}}
        wrong = await server.result("command/execute", command("about", metadata=missing))
        assert wrong["status"] == "FAILED_TO_START"


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "params.command_path"),
        ({"command_path": "about"}, "params.command_path"),
        ({"command_path": ["about", 5]}, "params.command_path[1]"),
        ({"command_path": ["about"], "args": ["x"]}, "params.args"),
        ({"command_path": ["about"], "metadata": "x"}, "params.metadata"),
        ({"command_path": ["about"], "metadata": {"contextId": 5}}, "params.metadata.contextId"),
        (command("about", metadata={URI: {"workspace_path": "relative"}}), f'params.metadata["{URI}"].workspace_path'),
        (command("about", metadata={URI: {"model": 5}}), f'params.metadata["{URI}"].model'),
    ],
)
async def test_a_parameter_of_another_type_is_named(server: RawClient, params: dict[str, Any], field: str) -> None:
    for headers in (EXTENSION, V1):
        error = await server.error("command/execute", params, headers)
        assert error["code"] == -32602
        assert field in error["message"]


async def test_an_execution_belongs_to_the_session_it_names(server: RawClient, workspace: Path) -> None:
    sent = await server.result("message/send", prompt("hello", workspace))
    found = await server.result("command/execute", command("about", metadata={"contextId": sent["contextId"]}))
    listed = await server.result("isthmus/tasks", {})
    assert {task["id"] for task in listed["tasks"]} == {found["execution_id"], sent["id"]}
    assert {task["contextId"] for task in listed["tasks"]} == {sent["contextId"]}
