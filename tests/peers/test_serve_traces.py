"""The traces of ``isthmus serve``, which a collector of OpenTelemetry gets over HTTP."""

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.a2a_serving import EXTENSION, allow, answer, prompt, rpc
from support.loaded_program import LoadedProgram
from support.mcp_hosting import SCRIPTED, write_servers
from support.otlp_collector import Collector, otlp_collector
from support.plain_http import plain_client
from support.serve_program import EDIT_SCRIPT, ServeProgram, serve_program
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
KEEP = """
name: practice
scenarios:
  - prompt: keep
    replies:
      - call: {name: ok, arguments: {x: secret}}
      - text: Kept.
"""
SECRETS = ("greet", "hello", "I wrote", "greeting.txt")


async def call(served: ServeProgram, method: str, params: object, **headers: str) -> dict[str, Any]:
    headers = {**EXTENSION, "Authorization": f"Bearer {served.token}", **headers}
    async with plain_client() as http:
        return (await http.post(served.url, json=rpc(method, params), headers=headers)).json()["result"]


@asynccontextmanager
async def traced(
    folder: Path, workspace: Path, loaded: LoadedProgram, *options: str, script: str = EDIT_SCRIPT, **variables: str
) -> AsyncGenerator[tuple[ServeProgram, Collector]]:
    with otlp_collector() as collector:
        environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "20"}
        environment |= {"OTEL_METRICS_EXPORTER": "none", **variables}
        async with serve_program(
            folder, workspace, "--log-format", "json", *options, script=script, environment=environment, loaded=loaded
        ) as served:
            yield served, collector


async def until_named(collector: Collector, name: str, count: int = 1) -> None:
    await eventually_async(lambda: len(collector.named(name)) >= count)


def log_of(folder: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (folder / "serve.log").read_text(encoding="utf-8").splitlines()]


async def test_a_task_is_a_trace_of_its_request_its_models_and_tools(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with traced(tmp_path, workspace, loaded_isthmus, "--approval-mode", "yolo") as (served, collector):
        traceparent = f"00-{TRACE}-{PARENT}-01"
        task = await call(served, "message/send", prompt("greet", workspace), traceparent=traceparent)
        await until_named(collector, "message/send")
        assert await served.end(signal.SIGTERM) == 0
    (request,), (segment,) = collector.named("message/send"), collector.named("invoke_agent Isthmus")
    first, second = collector.named("chat practice")
    (tool,) = collector.named("execute_tool write_file")
    assert {span.trace for span in collector.spans} == {TRACE}
    assert request.parent == PARENT
    assert segment.parent == request.id
    assert first.parent == second.parent == tool.parent == segment.id
    assert request.attributes == {
        "http.request.method": "POST",
        "http.response.status_code": 200,
        "rpc.method": "message/send",
        "isthmus.task.id": task["id"],
    }
    assert segment.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert segment.attributes["gen_ai.conversation.id"] == task["contextId"]
    assert segment.attributes["isthmus.task.state"] == "completed"
    assert first.attributes["gen_ai.operation.name"] == "chat"
    assert first.attributes["gen_ai.provider.name"] == "scripted"
    assert first.attributes["gen_ai.request.model"] == "practice"
    assert first.attributes["gen_ai.response.finish_reasons"] == ["tool_call"]
    assert second.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert first.attributes["gen_ai.usage.input_tokens"] > 0
    assert second.attributes["gen_ai.usage.cache_read.input_tokens"] > 0
    assert tool.attributes["gen_ai.tool.name"] == "write_file"
    assert tool.attributes["isthmus.tool.status"] == "succeeded"
    assert collector.paths == {"/v1/traces"}
    assert collector.resources[0]["service.name"] == "isthmus"
    sent = b"".join(collector.bodies)
    assert not [text for text in (*SECRETS, str(workspace), served.token) if text.encode() in sent]
    (line,) = (line for line in log_of(tmp_path) if line["logger"] == "isthmus.access")
    assert (line["trace_id"], line["span_id"]) == (TRACE, request.id)


async def test_work_that_goes_on_after_an_answer_links_to_what_was_before(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with traced(tmp_path, workspace, loaded_isthmus, OTEL_SERVICE_NAME="team-agent") as (served, collector):
        task = await call(served, "message/send", prompt("greet", workspace))
        await until_named(collector, "invoke_agent Isthmus")
        asked = task["status"]["message"]["parts"][0]["data"]["tool_call_id"]
        await call(served, "message/send", answer(task["id"], allow(asked)))
        await until_named(collector, "invoke_agent Isthmus", 2)
        await until_named(collector, "message/send", 2)
    first, second = collector.named("invoke_agent Isthmus")
    assert first.attributes["isthmus.task.state"] == "input-required"
    assert second.links == [first.id]
    assert second.trace != first.trace
    assert [span.id for span in collector.named("message/send")] == [first.parent, second.parent]
    assert collector.resources[0]["service.name"] == "team-agent"


async def test_texts_of_models_are_in_a_trace_if_that_is_wanted(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    variables = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}
    async with traced(tmp_path, workspace, loaded_isthmus, **variables) as (served, collector):
        await call(served, "message/send", prompt(" ".join(map(str, range(10_000))), workspace))
        await until_named(collector, "chat practice")
    (span,) = collector.named("chat practice")
    (asked,), (said,) = (json.loads(span.attributes[f"gen_ai.{side}.messages"]) for side in ("input", "output"))
    assert (asked["role"], said["role"]) == ("user", "assistant")
    assert asked["parts"][0]["content"].startswith("0 1 2 3") or len(asked["parts"]) > 1
    assert sum(len(part["content"]) for part in asked["parts"]) == 16_384
    assert said["parts"][0]["content"].startswith("You said: 0 1 2 3")


async def test_strangers_begin_no_trace(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    async with traced(tmp_path, workspace, loaded_isthmus) as (served, collector), plain_client() as http:
        refused = await http.post(served.url, json=rpc("message/send", prompt("greet", workspace)))
        assert refused.status_code == 401
        assert (await http.get(served.url + "healthz")).status_code == 200
        await call(served, "message/send", prompt("hi", workspace))
        await until_named(collector, "message/send")
    assert len([span for span in collector.spans if not span.parent]) == 1


@pytest.mark.parametrize("interval", ["OTEL_BSP_SCHEDULE_DELAY", "OTEL_METRIC_EXPORT_INTERVAL"])
async def test_a_collector_that_does_not_answer_slows_nothing(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram, interval: str
) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            interval: "10",
        }
        async with serve_program(tmp_path, workspace, environment=environment, loaded=loaded_isthmus) as served:
            began = time.monotonic()
            for _ in range(5):
                task = await asyncio.wait_for(call(served, "message/send", prompt("hi", workspace)), 5)
                assert task["status"]["state"] == "completed"
            assert await asyncio.wait_for(served.end(signal.SIGTERM), 15) == 0
            assert time.monotonic() - began < 15


async def test_an_mcp_server_is_told_the_trace_of_a_call(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    frames = tmp_path / "frames"
    program = f"tee {frames} | {sys.executable} -S {SCRIPTED} plain"
    write_servers(Path.home(), {"notes": {"command": "sh", "args": ["-c", program]}})
    async with traced(tmp_path, workspace, loaded_isthmus, "--approval-mode", "yolo", script=KEEP) as (
        served,
        collector,
    ):
        await call(served, "message/send", prompt("keep it", workspace))
        await until_named(collector, "execute_tool ok")
    (tool,) = collector.named("execute_tool ok")
    assert tool.attributes["mcp.method.name"] == "tools/call"
    assert tool.attributes["isthmus.mcp.server"] == "notes"
    (sent,) = (
        frame["params"]["_meta"]
        for frame in map(json.loads, frames.read_text(encoding="utf-8").splitlines())
        if frame.get("method") == "tools/call"
    )
    assert sent["traceparent"].startswith(f"00-{tool.trace}-{tool.id}-")


async def test_traces_can_be_turned_off(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> None:
    async with traced(tmp_path, workspace, loaded_isthmus, OTEL_SDK_DISABLED="true") as (served, collector):
        await call(served, "message/send", prompt("hi", workspace))
        assert await served.end(signal.SIGTERM) == 0
    assert collector.bodies == []
