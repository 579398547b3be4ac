from types import SimpleNamespace

import pytest

from isthmus.mcp_host.connection.backoff import ReconnectPolicy, RelistBackoff
from isthmus.mcp_host.transports import http_caps


def test_a_server_that_does_not_hold_is_tried_later_and_later_and_then_given_up() -> None:
    retries = ReconnectPolicy(30.0)
    waits: list[float] = []
    while not retries.is_exhausted:
        retries.note_end(29.9, has_answered=False)
        waits.append(retries.next_seconds())
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0]


def test_a_connection_that_held_or_answered_makes_the_next_loss_the_first_one() -> None:
    for seconds, has_answered in ((30.0, False), (0.0, True)):
        retries = ReconnectPolicy(30.0)
        retries.next_seconds()
        retries.note_end(seconds, has_answered=has_answered)
        assert retries.next_seconds() == 0.5


@pytest.mark.parametrize(("took", "pause"), [(0.01, 1.0), (4.0, 4.0), (600.0, 30.0)])
def test_what_was_given_up_is_tried_again_once_after_as_long_as_its_failure_took(took: float, pause: float) -> None:
    retries = ReconnectPolicy(30.0)
    assert not retries.take_turn(1000.0)
    retries.give_up(1000.0, took)
    due = 1000.0 + pause
    assert [retries.take_turn(now) for now in (due - 0.1, due, due + 0.1, 2000.0)] == [False, True, False, False]


def test_changes_that_come_one_upon_another_are_gathered_for_longer_and_longer() -> None:
    pace, now, waits = RelistBackoff(), 100.0, list[float]()
    for _ in range(10):
        waits.append(pace.seconds(now))
        now += waits[-1] + 0.05
    assert waits[:4] == [0.2, 0.4, 0.8, 1.6]
    assert waits[-1] == 30.0


def test_a_server_that_was_quiet_is_listed_soon_again() -> None:
    pace = RelistBackoff()
    assert [pace.seconds(0), pace.seconds(0.3), pace.seconds(20)] == [0.2, 0.4, 0.2]


@pytest.mark.anyio
async def test_the_first_streams_wait_for_nothing_however_young_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(http_caps, "asyncio", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(http_caps, "time", SimpleNamespace(monotonic=lambda: 1.0))
    pace = http_caps.ReopeningPace()
    for _ in range(http_caps.FREE_STREAMS + 1):
        await pace.wait()
    assert waited == [0.0] * http_caps.FREE_STREAMS + [http_caps.STREAM_SECONDS]
