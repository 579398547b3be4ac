"""Spans of the work of a real engine, as OpenTelemetry's own exporter gets them."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from isthmus.client import PromptMessage
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.placement import Placement
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.observability import tracing
from isthmus.observability.tracing import Tracing
from isthmus.runtime.telemetry import ModelCall, ServedRequest, TaskSegment, ToolRun
from support.agents import GatedAgent
from support.journals import journal_at
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class Spans:
    """Spans that have ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider, "Isthmus")

    @property
    def ended(self) -> Sequence[ReadableSpan]:
        """All of them, in the order of their ends."""
        return self._exporter.get_finished_spans()


def request() -> ServedRequest:
    return ServedRequest("POST", {}, is_let_in=True, method="message/send")


async def test_a_task_that_waited_is_in_the_trace_of_its_request(tmp_path: Path) -> None:
    spans, agent = Spans(), GatedAgent()
    options = EngineOptions(WorkspaceRule(default=tmp_path), placement=Placement(slots=1), telemetry=spans.tracing)
    engine = Engine(agent, await journal_at(tmp_path / "journal.sqlite"), options)
    await engine.start()
    try:
        for text in ("one", "two"):
            with spans.tracing.measure(request()):
                await engine.prompt(PromptMessage(text))
        sent = time.monotonic()
        await eventually_async(lambda: agent.started == ["one"])
        waited = time.monotonic() - sent
        agent.let_go("one", "two")
        await eventually_async(lambda: len(spans.ended) == 4)
    finally:
        await engine.aclose()
    requests = [span for span in spans.ended if span.name == "message/send"]
    segments = [span for span in spans.ended if span.name == "invoke_agent Isthmus"]
    assert [span.parent and span.parent.span_id for span in segments] == [
        span.context and span.context.span_id for span in requests
    ]
    first, second = (dict(span.attributes or {})["isthmus.queue_seconds"] for span in segments)
    assert isinstance(first, float)
    assert isinstance(second, float)
    assert second >= waited - 0.001  # which the clocks may differ by


def test_a_tool_of_an_mcp_server_has_the_attributes_of_mcp() -> None:
    spans = Spans()
    with spans.tracing.measure(run := ToolRun("search", "other", "call-1", "docs")):
        run.status, run.failure = "failed", "mcp_error"
    (span,) = spans.ended
    assert span.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call-1",
        "mcp.method.name": "tools/call",
        "isthmus.mcp.server": "docs",
        "isthmus.tool.status": "failed",
        "error.type": "mcp_error",
    }
    assert span.status.status_code is StatusCode.ERROR


def test_the_text_of_an_exception_is_in_no_span() -> None:
    spans = Spans()
    with pytest.raises(ValueError, match="secret"), spans.tracing.measure(ToolRun("search", "other", "call-1")):
        raise ValueError("secret")
    with pytest.raises(ValueError, match="secret"), spans.tracing.measure(ModelCall("openai", "gpt", lambda _: "")):
        raise ValueError("secret")
    assert len(spans.ended) == 2
    assert not any("secret" in span.to_json() for span in spans.ended)


@pytest.mark.parametrize("traceparent", ["", "no", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "00-" + "a" * 10_000])
def test_a_wrong_traceparent_begins_a_trace_of_its_own(traceparent: str) -> None:
    spans = Spans()
    with spans.tracing.measure(ServedRequest("POST", {"traceparent": traceparent}, is_let_in=True)):
        pass
    (span,) = spans.ended
    assert span.parent is None


def test_only_so_many_tasks_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "REMEMBERED", 3)
    spans = Spans()
    for number in (1, 2, 3, 4, 1, 4):
        with spans.tracing.measure(request()):
            spans.tracing.queued(f"other {number}")
        with spans.tracing.measure(TaskSegment(f"task {number}", "", "", "", None)):
            pass
    segments = [span for span in spans.ended if span.name.startswith("invoke_agent")]
    assert [len(span.links) for span in segments] == [0, 0, 0, 0, 0, 1]


async def test_work_in_the_background_of_a_request_is_no_part_of_another(tmp_path: Path) -> None:
    spans = Spans()

    async def serve(name: str) -> None:
        with spans.tracing.measure(request()):
            await asyncio.sleep(0)
            with spans.tracing.measure(ToolRun(name, "other", name)):
                await asyncio.sleep(0)

    await asyncio.gather(*(serve(f"tool-{number}") for number in range(5)))
    tools = [span for span in spans.ended if span.name.startswith("execute_tool")]
    assert len({span.parent.span_id for span in tools if span.parent is not None}) == 5
