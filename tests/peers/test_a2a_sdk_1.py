"""The official A2A clients of protocol 1.0 against ``isthmus serve``, over every binding that its card offers."""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from support.programs import NODE_PEERS, PYTHON_PEERS, node_package, python_peer, require
from support.serve_program import EDIT_SCRIPT, ServeProgram
from support.shared_serve import SharedServe, shared_serve

pytestmark = pytest.mark.anyio

BINDINGS = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3"), ("HTTP+JSON", "0.3")]
HOOK = "https://1.1.1.1/hook"


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


async def driven(program: ServeProgram, folder: Path, *command: str) -> dict[str, Any]:
    """Return the output of a program that drives the server."""
    environment = {**os.environ, "ISTHMUS_A2A_TOKEN": program.token}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        output, problems = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, problems.decode()
    found: dict[str, Any] = json.loads(output)
    return found


def kinds(items: list[dict[str, Any]]) -> list[str]:
    """Return the extension's kinds of the status updates."""
    return [item["statusUpdate"]["metadata"][URI]["kind"] for item in items if "statusUpdate" in item]


def final_state(items: list[dict[str, Any]]) -> str:
    """Return the state of the last item."""
    return items[-1]["statusUpdate"]["status"]["state"]


def assert_conversation(found: Mapping[str, Any], workspace: Path) -> None:
    """Assert that there were a prompt, its question, the answer, and the task afterwards."""
    assert found["asked"][0]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert kinds(found["asked"]) == ["STATE_CHANGE", "THOUGHT", "TOOL_CALL_UPDATE", "STATE_CHANGE"]
    assert final_state(found["asked"]) == "TASK_STATE_INPUT_REQUIRED"
    assert found["waiting"]["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert found["waiting"]["task"]["status"]["message"]["parts"][0]["data"]["status"] == "PENDING"
    assert kinds(found["answered"])[:2] == ["TOOL_CALL_UPDATE", "TOOL_CALL_UPDATE"]
    assert final_state(found["answered"]) == "TASK_STATE_COMPLETED"
    assert found["task"]["status"]["message"]["parts"][0]["text"] == "I wrote the greeting."
    assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "changed by the user\n"
    assert found["canceled"]["status"]["state"] == "TASK_STATE_CANCELED"


@pytest.mark.parametrize(("binding", "version"), BINDINGS)
async def test_the_python_sdk_1_3_does_all_it_can(
    program: ServeProgram, workspace: Path, binding: str, version: str
) -> None:
    python = str(python_peer())
    driver = "drive_a2a_1.py"
    found = await driven(program, PYTHON_PEERS, python, driver, program.url, str(workspace), URI, binding, version)
    assert_conversation(found, workspace)
    assert [(each["protocolBinding"], each["protocolVersion"]) for each in found["offered"]] == BINDINGS
    assert found["unknown"] == {"error": "TaskNotFoundError", "message": "Task not found: there is no task unknown"}
    assert found["finished"]["error"] == "TaskNotCancelableError"
    (extension,) = found["extended"]["capabilities"]["extensions"]
    assert "memory" in [command["name"] for command in extension["params"]["commands"]]
    if version == "1.0":
        assert [task["id"] for task in found["listed"]["tasks"]] == [found["task"]["id"]]
        assert found["listed"]["pageSize"] == 1
        assert found["listed"]["totalSize"] >= 1
    kept = {"id": "p", "taskId": found["task"]["id"], "url": HOOK, "token": "secret"}
    pushes = {"set": kept, "get": kept, "list": {"configs": [kept]}, "delete": {}}
    missing = ("list", "delete") if (binding, version) == ("HTTP+JSON", "0.3") else ()  # this client has neither there
    assert {name: found["pushes"][name] for name in pushes if name not in missing} == {
        name: config for name, config in pushes.items() if name not in missing
    }


@pytest.mark.parametrize(("binding", "version"), BINDINGS)
async def test_the_javascript_sdk_1_3_drives_a_prompt_a_confirmation_and_completion(
    program: ServeProgram, workspace: Path, binding: str, version: str
) -> None:
    node_package("a2a-js-1")
    command = (str(require("node")), "drive_a2a_1.mjs", program.url, str(workspace), URI, binding, version)
    found = await driven(program, NODE_PEERS, *command)
    assert_conversation(found, workspace)
    assert found["unknown"]
    if version == "1.0":
        assert [task["id"] for task in found["listed"]["tasks"]] == [found["task"]["id"]]
    assert found["push"]["url"] == HOOK
