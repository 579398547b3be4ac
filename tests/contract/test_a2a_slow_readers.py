"""Streams of both versions on the real engine: a reader that sleeps, and artifacts in the stream and in the task."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.client import PromptMessage
from isthmus.development_tool import AgentThought, ToolCall, ToolCallStatus
from isthmus.events import ArtifactPart, ArtifactUpdate, Thought, ToolCallUpdate
from support.a2a_serving import EXTENSION, RawClient, prompt, rpc
from support.a2a_v1 import said
from support.memory_agent import Progress, Step
from support.script_agent import serve_with
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def _completed(server: RawClient, task_id: str) -> dict[str, object] | None:
    task = await server.result("tasks/get", {"id": task_id})
    return task if task["status"]["state"] == "completed" else None


@pytest.mark.slow
@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_reader_that_sleeps_loses_nothing_but_outdated_progress(
    version: str, tmp_path: Path, workspace: Path
) -> None:
    rounds, filling = 500, "x" * 10_000

    def live(text: str) -> Progress:
        return Progress(ToolCallUpdate(ToolCall("c", ToolCallStatus.EXECUTING, "shell", {}, live_content=text)))

    def script(_: PromptMessage) -> Sequence[Step]:
        steps: list[Step] = [ToolCallUpdate(ToolCall("c", ToolCallStatus.EXECUTING, "shell", {}))]
        for index in range(rounds):
            steps += [Thought(AgentThought(str(index), filling)), live(f"{index}{filling}")]
        return [*steps, ToolCallUpdate(ToolCall("c", ToolCallStatus.SUCCEEDED, "shell", {}))]

    async with serve_with("engine", tmp_path)(script) as server:
        url = server.url if version == "0.3" else server.url + "message:stream"
        params = prompt("much", workspace) if version == "0.3" else said("much", workspace)
        body = rpc("message/stream", params) if version == "0.3" else params
        async with server.http.stream("POST", url, json=body, headers=EXTENSION) as response:
            chunks = response.aiter_bytes()
            received = await anext(chunks)
            frame = json.loads(received.split(b"data: ")[1].split(b"\n\n")[0])
            task = frame["result"] if version == "0.3" else frame["task"]
            await eventually_async(lambda: _completed(server, task["id"]), 30)
            received += b"".join([chunk async for chunk in chunks])
    frames = [frame for frame in received.decode().split("\n\n") if "data: " in frame]
    ids = [int(frame.split("\n")[0].removeprefix("id: ")) for frame in frames if frame.startswith("id: ")]
    assert ids == sorted(set(ids))
    thoughts = [json.dumps(index) for index in range(rounds)]
    assert [index for index in thoughts if f'"subject":"{index}"' in received.decode()] == thoughts
    progress = [frame for frame in frames if not frame.startswith("id: ")]
    assert all("live_content" in frame for frame in progress)
    assert 0 < len(progress) < rounds
    assert ("completed" if version == "0.3" else "TASK_STATE_COMPLETED") in frames[-1]


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_artifacts_stream_and_stand_in_the_task(version: str, tmp_path: Path, workspace: Path) -> None:
    part = ArtifactPart(raw="AA==", media_type="image/png", filename="dot.png")
    whole = ArtifactUpdate("r", (ArtifactPart(text="a"), part), name="Report", last_chunk=False)
    script = (whole, ArtifactUpdate("r", (ArtifactPart(data={"n": 1}),), append=True))
    async with serve_with("engine", tmp_path)(lambda _: script) as server:
        if version == "0.3":
            items = await server.stream("message/stream", prompt("report", workspace))
            updates = [item.result for item in items if item.result["kind"] == "artifact-update"]
            file: dict[str, Any] = {"bytes": "AA==", "mimeType": "image/png", "name": "dot.png"}
            parts: list[Any] = [{"kind": "text", "text": "a"}, {"kind": "file", "file": file}]
            more: dict[str, Any] = {"kind": "data", "data": {"n": 1}}
            task = await server.result("tasks/get", {"id": items[0].result["id"]})
        else:
            items = await server.stream("SendStreamingMessage", said("report", workspace))
            updates = [item.result["artifactUpdate"] for item in items if "artifactUpdate" in item.result]
            parts = [{"text": "a"}, {"raw": "AA==", "mediaType": "image/png", "filename": "dot.png"}]
            more = {"data": {"n": 1}}
            task = await server.result("GetTask", {"id": items[0].result["task"]["id"]})
            listed = await server.result("ListTasks", {"includeArtifacts": True})
            assert listed["tasks"][0]["artifacts"] == task["artifacts"]
            assert "artifacts" not in (await server.result("ListTasks", {"historyLength": 1}))["tasks"][0]
    assert updates[0]["artifact"] == {"artifactId": "r", "parts": parts, "name": "Report"}
    assert [(update["append"], update["lastChunk"]) for update in updates] == [(False, False), (True, True)]
    assert task["artifacts"] == [{"artifactId": "r", "parts": [*parts, more], "name": "Report"}]
