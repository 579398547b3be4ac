"""The official A2A clients in Python against ``isthmus serve --agent``: an ACP agent asks, is answered, completes."""

import asyncio
import json
import os
import shlex
import sys
import uuid
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import DataPart, Message, Part, Role, TaskQueryParams, TaskState, TaskStatusUpdateEvent, TextPart

from isthmus.a2a.protocol.extension import URI
from support.acp_hosting import PROGRAM
from support.programs import PYTHON_PEERS, python_peer
from support.serve_program import ServeProgram, serve_program

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

COMMAND = shlex.join([sys.executable, str(PROGRAM)])


@pytest.fixture
async def program(workspace: Path, tmp_path: Path) -> AsyncGenerator[ServeProgram]:
    async with serve_program(tmp_path, workspace, "--agent", COMMAND, "--trust-agent") as program:
        yield program


@pytest.mark.parametrize(("binding", "version"), [("JSONRPC", "1.0"), ("HTTP+JSON", "0.3")])
async def test_the_python_sdk_1_3_drives_a_hosted_acp_agent(
    program: ServeProgram, workspace: Path, binding: str, version: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(str(python_peer()), "drive_a2a_1.py", program.url, str(workspace), URI, binding, version),
        cwd=PYTHON_PEERS,
        env={**os.environ, "ISTHMUS_A2A_TOKEN": program.token},
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
    updates = [item["statusUpdate"] for item in found["asked"] if "statusUpdate" in item]
    kinds = [item["metadata"][URI]["kind"] for item in updates]
    assert kinds == ["STATE_CHANGE", "THOUGHT", "TOOL_CALL_UPDATE", "STATE_CHANGE"]
    assert updates[-1]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert found["answered"][-1]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert found["task"]["status"]["message"]["parts"][0]["text"] == "I wrote the greeting."
    assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "changed by the user\n"
    assert found["canceled"]["status"]["state"] == "TASK_STATE_CANCELED"


async def test_the_python_sdk_0_3_drives_a_hosted_acp_agent(program: ServeProgram, workspace: Path) -> None:
    headers = {"Authorization": f"Bearer {program.token}"}
    async with httpx.AsyncClient(headers=headers, trust_env=False, timeout=30) as http:
        card = await A2ACardResolver(http, program.url).get_agent_card()
        client = ClientFactory(ClientConfig(httpx_client=http)).create(card)

        async def last_update(*parts: Part, **more: Any) -> TaskStatusUpdateEvent:
            message = Message(role=Role.user, message_id=str(uuid.uuid4()), parts=list(parts), **more)
            items = [item async for item in client.send_message(message, extensions=[URI])]
            assert isinstance(items[-1], tuple)
            update = items[-1][1]
            assert isinstance(update, TaskStatusUpdateEvent)
            return update

        settings = {URI: {"workspace_path": str(workspace)}}
        asked = await last_update(Part(root=TextPart(text="Write a greeting")), metadata=settings)
        assert asked.status.state is TaskState.input_required
        assert asked.status.message is not None
        part = asked.status.message.parts[-1].root
        assert isinstance(part, DataPart)
        option = next(each["id"] for each in part.data["confirmation_request"]["options"] if each["id"] == "once")
        answer = {"tool_call_id": part.data["tool_call_id"], "selected_option_id": option}
        done = await last_update(Part(root=DataPart(data=answer)), task_id=asked.task_id, context_id=asked.context_id)
        assert (done.status.state, done.final) == (TaskState.completed, True)
        task = await client.get_task(TaskQueryParams(id=asked.task_id), extensions=[URI])
    assert task.status.message is not None
    assert isinstance(task.status.message.parts[0].root, TextPart)
    assert task.status.message.parts[0].root.text == "I wrote the greeting."
    assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
