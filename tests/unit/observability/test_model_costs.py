"""What models cost, in the metrics of a server."""

import asyncio

import pytest

from isthmus.models.measured import measured
from isthmus.models.port.base import Done, Message, ModelRequest, Text
from isthmus.models.scripted.script_file import parse_script
from isthmus.models.scripted.scripted import ScriptedModel
from isthmus.observability.metrics import WorkMetrics
from isthmus.runtime.telemetry import ModelCall, TaskSegment

pytestmark = pytest.mark.anyio


async def test_costs_are_added_up_by_model_and_what_has_no_price_is_counted() -> None:
    metrics = WorkMetrics()
    for price, count in (("1000", 2), ("unknown", 3), ("0", 1)):
        text = f"name: at-{price}\nprice: {price}\nscenarios: [{{prompt: '', replies: [{{text: '1234'}}]}}]"
        model = measured(ScriptedModel(parse_script(text, "s")), metrics)
        for _ in range(count):
            items = [item async for item in model.stream(ModelRequest("", (Message("user", (Text("1234"),)),)))]
            assert isinstance(items[-1], Done)
    found = {(family.name, *sample.values): sample.number for family in metrics.families() for sample in family.samples}
    assert found["isthmus_model_cost_usd_total", "scripted", "at-1000"] == pytest.approx(0.004)
    assert found["isthmus_model_cost_usd_total", "scripted", "at-0"] == 0
    assert ("isthmus_model_cost_usd_total", "scripted", "at-unknown") not in found
    assert found["isthmus_model_requests_without_price_total", "scripted", "at-unknown"] == 3
    assert len([name for name, *_ in found if name == "isthmus_model_requests_without_price_total"]) == 1


def test_what_came_from_a_cache_is_counted_beside_the_input() -> None:
    metrics = WorkMetrics()
    for cached in (300, 0):
        call = ModelCall("gemini", "test", lambda length: "")
        with metrics.measure(call):
            call.finish, call.input_tokens, call.cached_tokens, call.output_tokens = "stop", 400, cached, 5
    found = {(family.name, *sample.values): sample.number for family in metrics.families() for sample in family.samples}
    assert found["isthmus_model_cached_tokens_total", "gemini", "test"] == 300
    assert found["isthmus_model_tokens_total", "input", "gemini", "test"] == 800


def spend(metrics: WorkMetrics, user: str, picodollars: int) -> None:
    with metrics.measure(TaskSegment("t", "c", user, "", None)):
        call = ModelCall("gemini", "test", lambda length: "")
        with metrics.measure(call):
            call.finish, call.output_tokens, call.cost = "stop", 5, picodollars


@pytest.mark.parametrize(
    ("users", "shown"), [(0, {}), (1, {"ann": 3.0, "other": 6.0}), (3, {"ann": 3.0, "bob": 2.0, "": 4.0})]
)
def test_costs_are_added_up_by_user_where_users_are_named(users: int, shown: dict[str, float]) -> None:
    metrics = WorkMetrics(users=users)
    for user, dollars in (("ann", 1), ("bob", 2), ("", 4), ("ann", 2)):
        spend(metrics, user, dollars * 10**12)
    families = {family.name: family for family in metrics.families()}
    found = families.get("isthmus_user_cost_usd_total")
    assert {sample.values[0]: sample.number for sample in found.samples} == shown if found else not shown


async def test_the_users_of_segments_at_work_beside_each_other_are_told_apart() -> None:
    metrics, both = WorkMetrics(users=9), asyncio.Barrier(2)

    async def work(user: str, dollars: int) -> None:
        with metrics.measure(TaskSegment("t", "c", user, "", None)):
            await both.wait()
            call = ModelCall("gemini", "test", lambda length: "")
            with metrics.measure(call):
                await both.wait()
                call.output_tokens, call.cost = 5, dollars * 10**12

    await asyncio.gather(work("ann", 1), work("bob", 2))
    (found,) = [family for family in metrics.families() if family.name == "isthmus_user_cost_usd_total"]
    assert {sample.values[0]: sample.number for sample in found.samples} == {"ann": 1.0, "bob": 2.0}
