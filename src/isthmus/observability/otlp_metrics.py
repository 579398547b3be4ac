"""Sends the metrics of the page /metrics to a collector of OpenTelemetry, from time to time, by the SDK's own reader.

Nothing is counted here. Counters and gauges are observed when the reader collects; as observable instruments have no
histograms, these are added to what it exports. The names are the page's, except for requests to models, which
https://github.com/open-telemetry/semantic-conventions-genai names.
"""

import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    PeriodicExportingMetricReader,
    ResourceMetrics,
    ScopeMetrics,
)
from typing_extensions import override

from isthmus import __version__
from isthmus.observability.exposition import Buckets, Family
from isthmus.observability.otel_names import MODEL_METRICS, model_attributes
from isthmus.observability.otel_resource import described, end
from isthmus.observability.process import STARTED

UNITS = (("_seconds", "s"), ("_bytes", "By"))
"""Units by the ends of names, without ``_total``."""
_BEGUN = int(STARTED * 1e9)


class MetricExport:
    """Sends the metrics that ``read`` returns, in a thread of its own, as the standard variables say.

    ``known`` are the metrics without their numbers. ``read`` is called in that thread, once each time.
    """

    def __init__(self, known: Iterable[Family], read: Callable[[], Iterable[Family]]) -> None:
        self._moment = _Moment(read)
        exporter = _HistogramExporter(OTLPMetricExporter(), self._moment)
        self._provider = MeterProvider([PeriodicExportingMetricReader(exporter)], described(), shutdown_on_exit=False)
        meter = self._provider.get_meter("isthmus", __version__)
        for family in known:
            values = [partial(self._observed, family.name)]
            if family.kind == "counter":
                meter.create_observable_counter(family.name, values, _unit(family.name), family.about)
            elif family.kind == "gauge":
                meter.create_observable_gauge(family.name, values, _unit(family.name), family.about)

    def close(self) -> None:
        """Send the metrics once more, for a few seconds at most. Blocking."""
        end(self._provider.shutdown, "isthmus-metrics")

    def _observed(self, name: str, options: CallbackOptions) -> Iterable[Observation]:
        family = self._moment.families().get(name)
        if family is None:
            return []
        return [
            Observation(float(sample.number), dict(zip(family.labels, sample.values, strict=True)))
            for sample in family.samples
            if math.isfinite(sample.number)  # the SDK takes no others: isthmus_slots without a limit
        ]


class _Moment:
    """The metrics of the collection under way, which are read once for all instruments."""

    def __init__(self, read: Callable[[], Iterable[Family]]) -> None:
        self._read = read
        self._families: dict[str, Family] | None = None

    def families(self) -> dict[str, Family]:
        """Return the metrics by name."""
        if self._families is None:
            self._families = {family.name: family for family in self._read()}
        return self._families

    def end(self) -> None:
        """Forget them: the next collection reads them anew."""
        self._families = None


class _HistogramExporter(MetricExporter):
    """Exports what the SDK has collected together with the histograms of that moment."""

    def __init__(self, exporter: OTLPMetricExporter, moment: _Moment) -> None:
        super().__init__(exporter._preferred_temporality, exporter._preferred_aggregation)  # pyright: ignore[reportPrivateUsage]
        self._exporter: Any = exporter  # its methods have no complete types
        self._moment = moment

    @override
    def export(self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: Any) -> MetricExportResult:
        try:
            found = [_metric(family) for family in self._moment.families().values() if family.buckets]
        finally:
            self._moment.end()
        resources = [
            ResourceMetrics(
                each.resource,
                [_with(scope, found) for scope in each.scope_metrics],
                each.schema_url,
            )
            for each in metrics_data.resource_metrics
        ]
        return self._exporter.export(MetricsData(resources), timeout_millis, **kwargs)

    @override
    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        return self._exporter.force_flush(timeout_millis)

    @override
    def shutdown(self, timeout_millis: float = 30_000, **kwargs: Any) -> None:
        self._exporter.shutdown(timeout_millis, **kwargs)


def _with(scope: ScopeMetrics, found: Iterable[Metric]) -> ScopeMetrics:
    """Return the metrics of our meter with these; of two scopes with its name one would be lost."""
    is_ours = scope.scope.name == "isthmus"
    return ScopeMetrics(scope.scope, [*scope.metrics, *found], scope.schema_url) if is_ours else scope


def _metric(family: Family) -> Metric:
    """Return a histogram, by the name of the conventions where these have it."""
    name, unit = MODEL_METRICS.get(family.name, (family.name, _unit(family.name)))
    points = [_point(family, each) for each in family.buckets]
    return Metric(name, family.about, unit, Histogram(points, AggregationTemporality.CUMULATIVE))


def _point(family: Family, found: Buckets) -> HistogramDataPoint:
    labels = dict(zip(family.labels, found.values, strict=True))
    attributes = model_attributes(labels) if family.name in MODEL_METRICS else labels
    unknown: Any = None  # the protocol does not need the smallest and the largest number
    return HistogramDataPoint(
        attributes=attributes,
        start_time_unix_nano=_BEGUN,
        time_unix_nano=time.time_ns(),
        count=sum(found.counts),
        sum=found.total,
        bucket_counts=found.counts,
        explicit_bounds=family.bounds,
        min=unknown,
        max=unknown,
    )


def _unit(name: str) -> str:
    return next((unit for ending, unit in UNITS if name.removesuffix("_total").endswith(ending)), "")
