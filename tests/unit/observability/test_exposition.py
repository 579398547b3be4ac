"""The text format of Prometheus; its own parser is the judge."""

import math
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from isthmus.observability.exposition import (
    OTHER,
    SERIES,
    VALUES,
    Counter,
    Family,
    Histogram,
    counter,
    gauge,
    gauges,
    page,
)
from isthmus.observability.process import process_families


def samples(found: Iterable[Family]) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return the samples of a page by name and labels."""
    families = text_string_to_metric_families(page(found).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_a_counter_is_read_by_prometheus() -> None:
    tokens = Counter("isthmus_model_tokens_total", "Tokens.", ("direction", "model"))
    tokens.add("input", "flash", amount=12)
    tokens.add("input", "flash", amount=0.5)
    tokens.add("output", "flash")
    labels = (("direction", "input"), ("model", "flash"))
    assert samples([tokens.family()])["isthmus_model_tokens_total", labels] == 12.5
    (family,) = text_string_to_metric_families(page([tokens.family()]).decode())
    assert (family.name, family.type, family.documentation) == ("isthmus_model_tokens", "counter", "Tokens.")


def test_a_histogram_counts_what_was_within_each_bound() -> None:
    waits = Histogram("isthmus_queue_seconds", "Waits.", (0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        waits.observe(seconds)
    found = samples([waits.family()])
    buckets = [found["isthmus_queue_seconds_bucket", (("le", bound),)] for bound in ("0.1", "1", "+Inf")]
    assert buckets == [2, 3, 4]
    assert found["isthmus_queue_seconds_count", ()] == 4
    assert math.isclose(found["isthmus_queue_seconds_sum", ()], 7.65)


def test_what_nothing_was_counted_of_yet_is_on_the_page() -> None:
    assert samples([Counter("a_total", "A.").family()]) == {("a_total", ()): 0}
    assert samples([Histogram("b", "B.", (1.0,)).family()])["b_count", ()] == 0
    assert samples([Counter("c_total", "C.", ("model",)).family()]) == {}


@given(st.text())
def test_any_text_is_a_value_of_a_label(text: str) -> None:
    requests = Counter("a_total", "A.", ("method",))
    requests.add(text)
    ((_, labels),) = samples([requests.family()])
    assert labels == (("method", text[:100]),)


@pytest.mark.parametrize("text", ['a"b', "a\\", "a\\nb", "a\nb", "\r\u2028}", "\udc80"])
def test_a_value_of_a_label_begins_no_line(text: str) -> None:
    lines = [gauges("a", "A.", ("user",), {(text,): 1})]
    assert len(page(lines).decode().split("\n")) == 4
    assert len(samples(lines)) == 1


def test_labels_that_clients_invent_do_not_make_the_page_grow() -> None:
    requests = Counter("a_total", "A.", ("method", "code"))
    for number in range(1000):
        requests.add(f"method-{number}", "200")
    found = samples([requests.family()])
    assert len(found) == VALUES + 1
    assert found["a_total", (("code", "200"), ("method", OTHER))] == 1000 - VALUES
    for number in range(60):
        for code in range(60):
            requests.add(f"method-{number}", str(code))
    found = samples([requests.family()])
    assert len(found) <= SERIES + 1
    assert sum(found.values()) == 1000 + 60 * 60


@pytest.mark.parametrize("value", [0, 1, -3, 0.1, 1e300, 2**60, math.inf])
def test_numbers_are_read_as_they_were(value: float) -> None:
    assert samples([gauge("a", "A.", value)]) == {("a", ()): value}


def test_the_process_has_the_names_that_prometheus_expects() -> None:
    found = samples(process_families())
    assert found["process_cpu_seconds_total", ()] > 0
    assert found["process_resident_memory_bytes", ()] > 1_000_000
    assert found["process_start_time_seconds", ()] > 1_700_000_000
    assert samples([counter("a_total", "A.", 3)]) == {("a_total", ()): 3}
