"""A collector of OpenTelemetry's traces and metrics over HTTP, which decodes them by OpenTelemetry's own messages."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.wire_server import Answer, WireRequest, WireServer


@dataclass(slots=True)
class ReceivedSpan:
    """A span; ids are hexadecimal."""

    name: str
    trace: str
    id: str
    parent: str
    links: list[str]
    attributes: dict[str, Any]
    is_error: bool


@dataclass(slots=True)
class ReceivedMetric:
    """A metric as it was sent last. Points are numbers, or of a histogram the message, by their attributes."""

    kind: str
    unit: str
    is_monotonic: bool
    points: list[tuple[dict[str, Any], Any]]

    def value(self, **attributes: str) -> Any:
        """Return the point whose attributes have these values; dots in their names are written as two underscores."""
        wanted = {name.replace("__", "."): value for name, value in attributes.items()}
        (found,) = [point for given, point in self.points if wanted.items() <= given.items()]
        return found


@dataclass(slots=True)
class Collector:
    """A running collector."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list[ReceivedSpan])
    metrics: dict[str, ReceivedMetric] = field(default_factory=dict[str, ReceivedMetric])
    resources: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    paths: set[str] = field(default_factory=set[str])
    bodies: list[bytes] = field(default_factory=list[bytes])

    def named(self, name: str) -> list[ReceivedSpan]:
        """Return the spans with this name."""
        return [span for span in self.spans if span.name == name]

    def take(self, request: WireRequest) -> Answer:
        """Keep the spans or metrics of a request."""
        self.paths.add(request.path)
        self.bodies.append(request.body)
        if request.path.endswith("/metrics"):
            self._take_metrics(request.body)
        else:
            self._take_spans(request.body)
        return Answer(200, {"content-type": "application/x-protobuf", "content-length": "0"})

    def _take_metrics(self, body: bytes) -> None:
        message = ExportMetricsServiceRequest()
        message.ParseFromString(body)
        for resource in message.resource_metrics:
            self.resources.append(_attributes(resource.resource.attributes))
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                kind = metric.WhichOneof("data") or ""
                data: Any = getattr(metric, kind)
                self.metrics[metric.name] = ReceivedMetric(
                    kind,
                    metric.unit,
                    kind == "sum" and data.is_monotonic,
                    [
                        (_attributes(point.attributes), point if kind == "histogram" else point.as_double)
                        for point in data.data_points
                    ],
                )

    def _take_spans(self, body: bytes) -> None:
        message = ExportTraceServiceRequest()
        message.ParseFromString(body)
        for resource in message.resource_spans:
            self.resources.append(_attributes(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        [link.span_id.hex() for link in span.links],
                        _attributes(span.attributes),
                        span.status.code == 2,
                    )
                    for span in scope.spans
                ]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def otlp_collector() -> Generator[Collector]:
    """Run a collector."""
    collector = Collector()
    with WireServer(collector.take) as server:
        collector.url = server.base_url
        yield collector
