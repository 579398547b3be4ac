"""The metrics of ``isthmus serve``, which a collector of OpenTelemetry gets over HTTP."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.a2a_serving import EXTENSION, prompt, rpc
from support.loaded_program import LoadedProgram
from support.metrics_page import samples_of
from support.otlp_collector import Collector, otlp_collector
from support.plain_http import plain_client
from support.serve_program import ServeProgram, serve_program
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

NAMES = {
    "isthmus_model_seconds": "gen_ai.client.operation.duration",
    "isthmus_model_request_tokens": "gen_ai.client.token.usage",
}


async def call(served: ServeProgram, method: str, params: object) -> dict[str, Any]:
    headers = {**EXTENSION, "Authorization": f"Bearer {served.token}"}
    async with plain_client() as http:
        return (await http.post(served.url, json=rpc(method, params), headers=headers)).json()["result"]


@asynccontextmanager
async def measured(
    folder: Path, workspace: Path, loaded: LoadedProgram, *options: str, **variables: str
) -> AsyncGenerator[tuple[ServeProgram, Collector]]:
    with otlp_collector() as collector:
        environment = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_METRIC_EXPORT_INTERVAL": "50",
            "OTEL_TRACES_EXPORTER": "none",
            **variables,
        }
        async with serve_program(
            folder, workspace, "--approval-mode", "yolo", *options, environment=environment, loaded=loaded
        ) as served:
            yield served, collector


async def test_a_collector_gets_every_metric_of_the_page_with_its_numbers(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    slots, name = ("--slots", "3"), {"OTEL_SERVICE_NAME": "team-agent"}  # no number of slots is sent without a limit
    async with measured(tmp_path, workspace, loaded_isthmus, *slots, **name) as (served, collector):
        await call(served, "message/send", prompt("greet", workspace))
        async with plain_client() as http:
            headers = {"Authorization": f"Bearer {served.token}"}
            page = (await http.get(f"{served.url}metrics", headers=headers)).text
        await eventually_async(lambda: "isthmus_tool_calls_total" in collector.metrics)
        await eventually_async(lambda: collector.metrics["isthmus_tasks"].value(state="completed") == 1)
    declared = [line.split()[2:4] for line in page.splitlines() if line.startswith("# TYPE")]
    of_prometheus = {"sum": "counter"}
    got = {name: of_prometheus.get(metric.kind, metric.kind) for name, metric in collector.metrics.items()}
    # What has no sample yet is not sent.
    with_samples = {name for name, _ in samples_of(page)}
    expected = {name: kind for name, kind in declared if {name, f"{name}_count"} & with_samples}
    assert got.items() >= {NAMES.get(name, name): kind for name, kind in expected.items()}.items()
    assert collector.paths == {"/v1/metrics"}
    assert collector.resources[0]["service.name"] == "team-agent"
    tokens = collector.metrics["isthmus_model_tokens_total"]
    assert tokens.is_monotonic
    sent = tokens.value(direction="input", provider="scripted", model="practice")
    usage = collector.metrics["gen_ai.client.token.usage"]
    point = usage.value(
        gen_ai__token__type="input", gen_ai__provider__name="scripted", gen_ai__request__model="practice"
    )
    assert (usage.unit, point.count, point.sum) == ("{token}", 2, sent)
    assert sent > 0
    assert not point.HasField("min")
    assert list(point.explicit_bounds[:3]) == [1, 4, 16]
    duration = collector.metrics["gen_ai.client.operation.duration"]
    ((attributes, point),) = duration.points
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "practice",
    }
    assert (duration.unit, point.count, sum(point.bucket_counts)) == ("s", 2, 2)
    assert 0 < point.start_time_unix_nano < point.time_unix_nano


async def test_what_was_counted_last_is_sent_at_the_end(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    seldom = {"OTEL_METRIC_EXPORT_INTERVAL": "3600000"}
    async with measured(tmp_path, workspace, loaded_isthmus, **seldom) as (served, collector):
        await call(served, "message/send", prompt("greet", workspace))
        assert collector.bodies == []
        assert await served.end(signal.SIGTERM) == 0
    assert collector.metrics["isthmus_tool_calls_total"].value(status="succeeded") == 1
    assert "isthmus_journal_available" not in collector.metrics


@pytest.mark.parametrize("variable", ["OTEL_METRICS_EXPORTER", "OTEL_SDK_DISABLED"])
async def test_metrics_can_be_turned_off(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram, variable: str
) -> None:
    off = {variable: "none" if variable == "OTEL_METRICS_EXPORTER" else "true"}
    async with measured(tmp_path, workspace, loaded_isthmus, "--otel", **off) as (served, collector):
        await call(served, "message/send", prompt("hi", workspace))
        assert await served.end(signal.SIGTERM) == 0
    assert collector.bodies == []
