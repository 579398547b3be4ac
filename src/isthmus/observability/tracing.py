"""Traces by OpenTelemetry: a request, the work on its task, and in it models and tools, as its conventions name them.

https://github.com/open-telemetry/semantic-conventions-genai is what the attributes of models and tools follow. Nothing
of a prompt, an answer, a call or a file is in them, nor a user's name, unless texts of models are to be kept. Spans are
sent by a thread of their own, whose queue drops what is too much.
"""

import contextlib
import logging
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
    use_span,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from typing_extensions import override

from isthmus import __version__
from isthmus.observability.otel_names import FINISHES, PROVIDERS
from isthmus.observability.otel_resource import described, end
from isthmus.runtime.telemetry import ModelCall, Operation, PushAttempt, ServedRequest, TaskSegment, Telemetry, ToolRun
from isthmus.text.money import in_dollars

REMEMBERED = 1000
"""Maximum number of tasks of which the last span is remembered; each links to it when its work goes on."""
CONTENT_CHARACTERS = 16_384
"""Maximum number of characters of the texts of one request to a model, if they are kept."""

_Attributes = dict[str, str | int | float | list[str]]


class Tracing(Telemetry):
    """Makes spans of a server's work. ``keeps_content``: the texts of requests to models are in them, too."""

    def __init__(self, provider: TracerProvider, agent: str, *, keeps_content: bool = False) -> None:
        self._tracer = provider.get_tracer("isthmus", __version__)
        self._provider = provider
        self._agent = agent
        self._keeps_content = keeps_content
        self._propagator = TraceContextTextMapPropagator()
        self._waiting: OrderedDict[str, SpanContext] = OrderedDict()
        """Spans of the requests that let tasks wait for a process, by task."""
        self._last: OrderedDict[str, SpanContext] = OrderedDict()
        """Spans of the last work on tasks, by task."""

    @override
    def measure(self, operation: Operation) -> AbstractContextManager[object]:
        match operation:
            case ServedRequest():
                return self._request(operation) if operation.is_let_in else contextlib.nullcontext()
            case TaskSegment():
                return self._segment(operation)
            case ModelCall():
                return self._model_call(operation)
            case ToolRun():
                return self._tool_run(operation)

    @override
    def queued(self, task_id: str) -> None:
        context = get_current_span().get_span_context()
        if context.is_valid:
            _remember(self._waiting, task_id, context)

    @override
    def pushed(self, attempt: PushAttempt) -> None: ...

    def close(self) -> None:
        """Send the spans that have ended, for a few seconds at most. Blocking."""
        end(self._provider.shutdown, "isthmus-traces")

    @contextlib.contextmanager
    def _request(self, request: ServedRequest) -> Generator[None]:
        parent = self._propagator.extract(_trace_headers(request.headers), Context())
        given: _Attributes = {"http.request.method": request.verb}
        span = self._tracer.start_span(request.verb, parent, SpanKind.SERVER, given)
        with _current(span):
            try:
                yield
            finally:
                if request.method:
                    span.update_name(request.method)
                    span.set_attribute("rpc.method", request.method)
                if request.task_id:
                    span.set_attribute("isthmus.task.id", request.task_id[:100])
                if request.status:
                    span.set_attribute("http.response.status_code", request.status)
                error = str(request.error) if request.error is not None else ""
                _end(span, error or (str(request.status) if request.status >= 500 else ""))

    @contextlib.contextmanager
    def _segment(self, segment: TaskSegment) -> Generator[None]:
        waiting = self._waiting.pop(segment.task_id, None)
        former = self._last.get(segment.task_id)
        parent = set_span_in_context(NonRecordingSpan(waiting), Context()) if waiting is not None else None
        given: _Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._agent,
            "gen_ai.conversation.id": segment.context_id,
            "isthmus.task.id": segment.task_id,
        }
        if segment.queued_seconds is not None:
            given["isthmus.queue_seconds"] = round(segment.queued_seconds, 6)
        links = [Link(former)] if former is not None else []
        span = self._tracer.start_span(f"invoke_agent {self._agent}", parent, SpanKind.INTERNAL, given, links)
        _remember(self._last, segment.task_id, span.get_span_context())
        with _current(span):
            try:
                yield
            finally:
                span.set_attribute("isthmus.task.state", segment.state or "interrupted")
                _end(span, (segment.reason or "failed") if segment.state == "failed" else "")

    @contextlib.contextmanager
    def _model_call(self, call: ModelCall) -> Generator[None]:
        given: _Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": PROVIDERS.get(call.provider, call.provider),
            "gen_ai.request.model": call.model,
        }
        # Not the current span: a generator's steps may run in several contexts.
        span = self._tracer.start_span(f"chat {call.model}", None, SpanKind.CLIENT, given)
        try:
            yield
        finally:
            if call.finish:
                span.set_attribute("gen_ai.response.finish_reasons", [FINISHES.get(call.finish, call.finish)])
            if call.answer is not None:
                span.set_attribute("gen_ai.usage.input_tokens", call.input_tokens)
                span.set_attribute("gen_ai.usage.output_tokens", call.output_tokens)
                span.set_attribute("gen_ai.usage.cache_read.input_tokens", call.cached_tokens)
                span.set_attribute("gen_ai.usage.cache_creation.input_tokens", call.cache_write_tokens)
                if call.cost is not None:
                    span.set_attribute("isthmus.model.cost_usd", in_dollars(call.cost))
            if self._keeps_content and span.is_recording():
                span.set_attribute("gen_ai.input.messages", call.prompt(CONTENT_CHARACTERS))
                if call.answer is not None:
                    span.set_attribute("gen_ai.output.messages", call.answer(CONTENT_CHARACTERS))
            _end(span, call.failure)

    @contextlib.contextmanager
    def _tool_run(self, run: ToolRun) -> Generator[None]:
        given: _Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": run.name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": run.call_id,
        }
        if run.server:
            # The conventions put MCP's attributes here, where a tool's span surrounds the call.
            given |= {"mcp.method.name": "tools/call", "isthmus.mcp.server": run.server}
        span = self._tracer.start_span(f"execute_tool {run.name}", None, SpanKind.INTERNAL, given)
        with _current(span):
            try:
                yield
            finally:
                span.set_attribute("isthmus.tool.status", run.status or "canceled")
                _end(span, (run.failure or "tool_error") if run.status == "failed" else "")


class TraceIds(logging.Filter):
    """Adds the ids of the span under way to each record that is logged in it."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Return True; the record has the ids in its ``fields``."""
        span = get_current_span()
        if span.is_recording():
            context = span.get_span_context()
            ids = {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}
            record.fields = {**getattr(record, "fields", {}), **ids}
        return True


def exporting_provider() -> TracerProvider:
    """Return a provider that exports spans as the standard variables of the environment say."""
    provider = TracerProvider(resource=described(), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def _current(span: Span) -> AbstractContextManager[object]:
    # Texts of exceptions may be contents of files, so they are not recorded.
    return use_span(span, end_on_exit=False, record_exception=False, set_status_on_exception=False)


def _end(span: Span, error: str) -> None:
    if error:
        span.set_attribute("error.type", error[:100])
        span.set_status(Status(StatusCode.ERROR))
    span.end()


def _trace_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name in ("traceparent", "tracestate") if (value := headers.get(name)) is not None}


def _remember(spans: OrderedDict[str, SpanContext], task_id: str, context: SpanContext) -> None:
    spans[task_id] = context
    spans.move_to_end(task_id)
    if len(spans) > REMEMBERED:
        spans.popitem(last=False)
