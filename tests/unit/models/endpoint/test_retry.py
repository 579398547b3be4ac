from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.models.endpoint.retry import PASSING, PATIENT, RetryPolicy, retry_after
from isthmus.models.port.base import ModelError, ModelErrorKind

kinds = st.sampled_from(ModelErrorKind)
NOW = 1_800_000_000.0


@given(
    kinds,
    st.integers(1, 20),
    st.floats(0, 1, exclude_max=True),
    st.none() | st.floats(0, 1e9),
    st.booleans(),
    st.integers(1, 8),
)
def test_a_wait_is_never_longer_than_the_policy_allows_and_tries_end(
    kind: ModelErrorKind, attempt: int, random: float, asked: float | None, final: bool, attempts: int
) -> None:
    policy = RetryPolicy(attempts=attempts)
    error = ModelError(kind, "x", retry_after=asked, final=final)
    wait = policy.wait(error, attempt, random)
    if wait is not None:
        assert 0 <= wait <= policy.patience
        assert attempt < attempts
        assert kind in PASSING
        assert not final
        assert asked is None or wait == asked


def test_waits_grow_and_differ_from_client_to_client() -> None:
    policy = RetryPolicy(attempts=9, first_wait=1, longest_back_off=20)
    error = ModelError(ModelErrorKind.OVERLOADED, "x")
    assert [policy.wait(error, attempt, 0) for attempt in range(1, 7)] == [0.5, 1, 2, 4, 8, 10]
    assert policy.wait(error, 1, 0.5) == 0.75


@pytest.mark.parametrize(
    ("kind", "tries"),
    [
        (ModelErrorKind.RATE_LIMIT, 10),
        (ModelErrorKind.OVERLOADED, 10),
        (ModelErrorKind.INTERRUPTED, 5),
        (ModelErrorKind.EMPTY, 3),
        (ModelErrorKind.UNREACHABLE, 10),
        (ModelErrorKind.AUTHENTICATION, 1),
        (ModelErrorKind.CONTEXT_TOO_LONG, 1),
        (ModelErrorKind.SAFETY, 1),
    ],
)
def test_each_kind_of_failure_has_its_number_of_tries(kind: ModelErrorKind, tries: int) -> None:
    assert RetryPolicy().attempts_for(ModelError(kind, "x")) == tries


def all_waits(policy: RetryPolicy, error: ModelError, random: float) -> list[float]:
    waits: list[float] = []
    while (wait := policy.wait(error, len(waits) + 1, random, sum(waits))) is not None:
        waits.append(wait)
    return waits


def test_work_that_nobody_watches_waits_out_minutes_of_overload() -> None:
    error = ModelError(ModelErrorKind.OVERLOADED, "x")
    assert all_waits(PATIENT, error, 0.5) == [1.5, 3, 6, 12, 24, 45, 45, 45, 45]
    assert all_waits(RetryPolicy(), error, 0.5) == [0.75, 1.5, 3, 6, 12, 24, 45, 45, 45]


def test_the_waits_that_a_server_asks_for_have_a_limit_together() -> None:
    error = ModelError(ModelErrorKind.RATE_LIMIT, "x", retry_after=500)
    assert all_waits(PATIENT, error, 0) == [500, 500]
    assert all_waits(RetryPolicy(), error, 0) == [500]
    assert all_waits(RetryPolicy(patience=499), error, 0) == []


WAITS: list[tuple[dict[str, str], dict[str, Any], float | None]] = [
    ({}, {}, None),
    ({"retry-after": "7"}, {}, 7),
    ({"retry-after": " 1.5 "}, {}, 1.5),
    ({"retry-after-ms": "250", "retry-after": "7"}, {}, 0.25),
    ({"retry-after": formatdate(NOW + 90, usegmt=True)}, {}, 90),
    ({"retry-after": formatdate(NOW - 90, usegmt=True)}, {}, 0),
    ({"retry-after": "soon"}, {}, None),
    ({"retry-after": "-3"}, {}, None),
    ({"retry-after": "1e400"}, {}, None),
    ({}, {"details": [{"retryDelay": "34.07s"}]}, 34.07),
    ({}, {"details": [{"other": 1}, "x", {"retryDelay": 3}]}, None),
    ({}, {"details": "x"}, None),
]


@pytest.mark.parametrize(("headers", "body", "seconds"), WAITS)
def test_what_a_server_asks_to_wait_is_read_from_headers_and_body(
    headers: dict[str, str], body: dict[str, Any], seconds: float | None
) -> None:
    assert retry_after(headers, body, NOW) == seconds
