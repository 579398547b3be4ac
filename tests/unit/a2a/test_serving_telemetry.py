import logging
import sys
from pathlib import Path

import pytest

from isthmus.a2a.serving.names import ServingError
from isthmus.a2a.serving.telemetry import ServedTelemetry, TelemetryOptions
from isthmus.programs.serve.serve_settings import NAMES

OFF = {"OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}


@pytest.fixture
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("opentelemetry.context", "opentelemetry.metrics", "opentelemetry.sdk.metrics"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("tracing", "otlp_metrics", "otel_resource"):
        monkeypatch.delitem(sys.modules, f"isthmus.observability.{name}", raising=False)


@pytest.mark.usefixtures("without_the_extra")
def test_wanted_traces_need_their_packages() -> None:
    with pytest.raises(ServingError, match=r"^telemetry.otel: .*pip install 'isthmus\[otel\]'"):
        ServedTelemetry(TelemetryOptions(otel=True), "Isthmus", {})
    with pytest.raises(ServingError, match=r"^--otel: .*pip install 'isthmus\[otel\]'"):
        ServedTelemetry(TelemetryOptions(otel=True), "Isthmus", {}, NAMES)


@pytest.mark.usefixtures("without_the_extra")
def test_a_collector_in_the_environment_does_not_keep_a_server_from_starting(
    caplog: pytest.LogCaptureFixture,
) -> None:
    telemetry = ServedTelemetry(TelemetryOptions(), "Isthmus", COLLECTOR)
    assert not caplog.records
    telemetry.warn()
    assert "pip install 'isthmus[otel]'" in caplog.text


@pytest.mark.usefixtures("without_the_extra")
def test_without_a_collector_nothing_of_opentelemetry_is_loaded() -> None:
    handler = logging.NullHandler()
    ServedTelemetry(TelemetryOptions(), "Isthmus", {}).name_in(handler)
    ServedTelemetry(TelemetryOptions(otel=True), "Isthmus", {"OTEL_SDK_DISABLED": "TRUE"}).name_in(handler)
    ServedTelemetry(TelemetryOptions(), "Isthmus", {**COLLECTOR, **OFF}).name_in(handler)
    assert handler.filters == []


def test_the_token_for_the_metrics_is_made_once(tmp_path: Path) -> None:
    options = TelemetryOptions(metrics_token_file=tmp_path / "reader")
    token = ServedTelemetry(options, "Isthmus", {}).token
    assert len(token) > 30
    assert ServedTelemetry(options, "Isthmus", {}).token == token
