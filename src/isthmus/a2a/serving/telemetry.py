"""Metrics and traces of a server, and the pages and collectors by which others watch it, from its options."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from isthmus.a2a.serving.names import IN_PYTHON, OptionNames, ServingError
from isthmus.record import record
from isthmus.runtime.telemetry import Telemetries, Telemetry

if TYPE_CHECKING:
    from isthmus.a2a.server.probes import Probes
    from isthmus.engine import Engine
    from isthmus.observability.exposition import Family
    from isthmus.observability.otlp_metrics import MetricExport
    from isthmus.observability.page import MetricsPage
    from isthmus.observability.tracing import Tracing

MISSING = (
    "traces and metrics for a collector need the packages of OpenTelemetry, which are not installed: pip install"
    " 'isthmus[otel]'"
)
ANSWER_SECONDS = 5.0
"""Maximum time in seconds that the sender of metrics waits for the event loop."""
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""Variable that has the texts of requests to models in traces."""

log = logging.getLogger(__name__)


@record
class TelemetryOptions:
    """Options of a server for those who operate it.

    ``metrics_token_file`` has a token that opens /metrics alone; with ``metrics_are_open`` nobody needs one. The tasks
    and the cost of up to ``metrics_users`` users are counted by name. ``otel``: traces and metrics are sent even if no
    variable of the environment names a collector.
    """

    metrics_token_file: Path | None = None
    metrics_are_open: bool = False
    metrics_users: int = 0
    otel: bool = False


class ServedTelemetry:
    """The telemetry of one server, from its beginning to the end of the context; ``work`` takes what happens.

    Raises:
        ServingError: the packages of OpenTelemetry are missing, and the options ask for them.
        TokenFileError: the file with the token cannot be used.
    """

    def __init__(
        self,
        options: TelemetryOptions,
        agent: str,
        environment: Mapping[str, str] = os.environ,
        names: OptionNames = IN_PYTHON,
    ) -> None:
        from isthmus.a2a.token_file import ensure_token_file
        from isthmus.observability.metrics import WorkMetrics

        path = options.metrics_token_file
        self.token = "" if path is None else ensure_token_file(path)
        self._options = options
        self._metrics = WorkMetrics(users=options.metrics_users)
        self._warning = ""
        self._tracing: Tracing | None = None
        self._export: MetricExport | None = None
        self._open_export: type[MetricExport] | None = None
        self._is_ending = False
        try:
            if _sends("TRACES", options, environment):
                self._tracing = _tracing(agent, environment)
            if _sends("METRICS", options, environment):
                self._open_export = _metric_export()
        except ModuleNotFoundError as error:
            if options.otel:
                raise ServingError(f"{names.otel}: {MISSING}") from error
            # A variable for all programs of a machine must not keep this one from starting.
            self._warning = MISSING
        self.work: Telemetry = self._metrics if self._tracing is None else Telemetries(self._tracing, self._metrics)

    async def __aenter__(self) -> "ServedTelemetry":
        """Return it."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Send the last traces and metrics."""
        self._is_ending = True
        closing = [each.close for each in (self._tracing, self._export) if each is not None]
        await asyncio.gather(*map(asyncio.to_thread, closing))

    def warn(self) -> None:
        """Log why nothing is sent though a variable of the environment asks for it."""
        if self._warning:
            log.warning("%s", self._warning)

    def name_in(self, handler: logging.Handler) -> None:
        """Have the ids of the trace under way in what a handler logs."""
        if self._tracing is not None:
            from isthmus.observability.tracing import TraceIds

            handler.addFilter(TraceIds())

    def probes(self, engine: "Engine") -> "Probes":
        """Return the pages for programs that watch the server, and begin to send metrics if that is wanted."""
        from isthmus.a2a.server.probes import Metrics, Probes
        from isthmus.engine.readiness import Readiness
        from isthmus.observability.exposition import CONTENT_TYPE
        from isthmus.observability.page import MetricsPage

        ready, options = Readiness(engine), self._options
        page = MetricsPage(engine, self._metrics, ready, options.metrics_users)
        if self._open_export is not None:
            self._export = self._open_export(page.known(), self._reading(page, asyncio.get_running_loop()))
        return Probes(ready, Metrics(page.text, CONTENT_TYPE, self.token, options.metrics_are_open))

    def _reading(self, page: "MetricsPage", loop: asyncio.AbstractEventLoop) -> "Callable[[], Iterable[Family]]":
        """Return the function by which another thread gets the metrics of a page."""

        def read() -> "Iterable[Family]":
            if self._is_ending:  # the engine is closed: what has been counted is all that is left to say
                return self._metrics.families()
            answer = asyncio.run_coroutine_threadsafe(page.families(), loop)
            try:
                return answer.result(ANSWER_SECONDS)
            finally:
                answer.cancel()

        return read


def _tracing(agent: str, environment: Mapping[str, str]) -> "Tracing":
    """Return what makes traces. OpenTelemetry is loaded here, for those who want them.

    Raises:
        ModuleNotFoundError: OpenTelemetry is not installed.
    """
    from isthmus.observability.tracing import Tracing, exporting_provider

    keeps_content = environment.get(CONTENT, "").strip().lower() in ("true", "1", "span_only", "span_and_event")
    return Tracing(exporting_provider(), agent, keeps_content=keeps_content)


def _metric_export() -> "type[MetricExport]":
    """Return what sends metrics.

    Raises:
        ModuleNotFoundError: OpenTelemetry is not installed.
    """
    from isthmus.observability.otlp_metrics import MetricExport

    return MetricExport


def _sends(kind: str, options: TelemetryOptions, environment: Mapping[str, str]) -> bool:
    """Return whether TRACES or METRICS are sent: a collector is named or the options want it, and it is not off."""
    endpoints = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT")
    is_off = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    if is_off or environment.get(f"OTEL_{kind}_EXPORTER", "").strip().lower() == "none":
        return False
    return options.otel or any(environment.get(name) for name in endpoints)
