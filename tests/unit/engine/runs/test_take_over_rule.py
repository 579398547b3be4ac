from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isthmus.engine.runs.take_over_rule import TakeOverRule
from isthmus.journal.port.base import Journal, JournalUnavailable
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journal_tasks import LEASE, row_of

pytestmark = pytest.mark.anyio

ELSEWHERE = "one:another machine:1:1"


class Clocks:
    """The journal's clock and the monotonic one."""

    def __init__(self) -> None:
        self.unix = 1000.0
        self.monotonic = 50.0

    def passes(self, seconds: float) -> None:
        self.unix += seconds
        self.monotonic += seconds


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.fixture
async def journal(tmp_path: Path, clocks: Clocks) -> AsyncIterator[Journal]:
    opened = await SqliteJournal.open(tmp_path / "journal.sqlite", lambda: clocks.unix)
    yield opened
    await opened.aclose()


async def begun_rule(journal: Journal, clocks: Clocks, owner: str = ELSEWHERE) -> TakeOverRule:
    """Return the rule of a process that has begun after another one, the owner of a task, was silent for a lease."""
    await journal.create(NewTask("t1", "c1", "/work", "Fix it"), [], owner, LEASE)
    clocks.passes(LEASE + 1)
    rule = TakeOverRule(journal, "us", LEASE, lambda: clocks.monotonic)
    await rule.begin()
    return rule


def goes_on(rule: TakeOverRule, clocks: Clocks, seconds: float) -> None:
    """Let time pass in which the journal answers."""
    for _ in range(int(seconds)):
        clocks.passes(1)
        rule.reached()


async def test_a_lease_that_ran_out_is_replaced(journal: Journal, clocks: Clocks) -> None:
    rule = await begun_rule(journal, clocks)
    assert not rule.is_in_grace()
    assert rule.is_abandoned(await row_of(journal))


async def test_a_process_that_lives_here_gets_the_time_of_a_lease(journal: Journal, clocks: Clocks) -> None:
    rule = await begun_rule(journal, clocks, new_owner())
    goes_on(rule, clocks, LEASE - 1)
    assert rule.is_in_grace()
    assert not rule.is_abandoned(await row_of(journal))
    assert rule.is_abandoned(await row_of(journal), is_unwanted=True), "it is to be cancelled"
    goes_on(rule, clocks, 1)
    assert rule.is_abandoned(await row_of(journal)), "it hangs"


async def test_after_a_failure_of_the_journal_all_get_it(journal: Journal, clocks: Clocks) -> None:
    rule = await begun_rule(journal, clocks)
    rule.failed(ZeroDivisionError("not the journal's"))
    assert not rule.is_in_grace()
    rule.failed(JournalUnavailable("away"))
    assert rule.is_in_grace()
    rule.reached()
    goes_on(rule, clocks, LEASE - 1)
    assert rule.is_in_grace()
    goes_on(rule, clocks, 1)
    assert not rule.is_in_grace()


async def test_after_the_machine_slept_all_get_it(journal: Journal, clocks: Clocks) -> None:
    rule = await begun_rule(journal, clocks)
    clocks.unix += 3600.0
    rule.reached()
    assert rule.is_in_grace()
    goes_on(rule, clocks, LEASE)
    assert not rule.is_in_grace()


async def test_after_this_process_was_stopped_all_get_it(journal: Journal, clocks: Clocks) -> None:
    rule = await begun_rule(journal, clocks)
    clocks.passes(LEASE)
    assert rule.is_in_grace(), "also before the journal was asked"
    rule.reached()
    assert rule.is_in_grace()


async def test_a_process_that_has_ended_gets_no_time(journal: Journal, clocks: Clocks) -> None:
    name, host, pid, _ = new_owner().split(":")
    rule = await begun_rule(journal, clocks, f"{name}:{host}:{pid}:1")
    rule.failed(JournalUnavailable("away"))
    assert rule.is_abandoned(await row_of(journal))
    assert await rule.gone() == [f"{name}:{host}:{pid}:1"]


@pytest.mark.parametrize(
    ("former", "reason"),
    [
        (ELSEWHERE, "another server took the task over (the one that ran it was not heard of for 21 s)"),
        ("us", "the journal could not record the work"),
        ("ended", "the agent's process ended"),
        (None, "the agent's process ended"),
    ],
)
async def test_it_says_why_the_work_broke_off(
    journal: Journal, clocks: Clocks, former: str | None, reason: str
) -> None:
    name, host, pid, _ = new_owner().split(":")
    owner = f"{name}:{host}:{pid}:1" if former == "ended" else former or ELSEWHERE
    rule = await begun_rule(journal, clocks, owner)
    if former is None:
        taken = await journal.take_over(await row_of(journal), "them", LEASE)
        assert taken is not None
        await journal.release([taken.lease])
    (one,) = await journal.queue.take("us", LEASE, 1, QueueScope())
    assert rule.broken_off(one) == reason
