"""The contract of every journal: its writes, their order, leases, inboxes and sessions."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    ModifiedFileDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    event_from_json,
)
from isthmus.journal.port.base import INBOX_MESSAGES, Journal, RepeatedMessage, StaleLease
from isthmus.journal.sql import rows
from support.journal_tasks import LEASE, new_task, row_of, texts
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

QUESTION = ToolCall(
    "call-1",
    ToolCallStatus.PENDING,
    "run_shell_command",
    {"command": "ls", "count": 9007199254740993},
    confirmation_request=ConfirmationRequest(
        (ConfirmationOption("proceed_once", "Allow once"),), execute_details=ExecuteDetails("ls")
    ),
)


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    opened = await journal_place.open()
    yield opened
    await opened.aclose()


async def test_a_new_task_is_submitted_and_leased_with_its_first_event(journal: Journal) -> None:
    taken = await new_task(journal)
    row = taken.row
    assert await journal.task("t1") == row
    assert (row.state, row.seq, row.owner, row.epoch) == (TaskState.SUBMITTED, 1, "owner-a", 1)
    assert [item.event for item in taken.deliveries] == [Prompt("m1", "Fix it")]


async def test_a_write_is_not_taken_back_when_who_waits_for_it_is_cancelled(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    write = journal.append(lease, texts("kept"), full_sync=True)  # so that it is under way for a while

    async def wait() -> None:
        await write

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [item.event for item in await write] == list(texts("kept"))
    assert (await row_of(journal)).seq == 2


async def test_events_are_numbered_without_gaps_in_the_order_of_the_calls(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    writes = [journal.append(lease, texts(f"a{n}", f"b{n}")) for n in range(300)]
    for write in writes:
        await write
    kept = await journal.events("t1", 0, 10_000)
    assert [item.seq for item in kept] == list(range(1, 602))
    assert [item.event for item in kept[1:5]] == list(texts("a0", "b0", "a1", "b1"))
    assert [item.seq for item in await journal.events("t1", 599, 10)] == [600, 601]


async def test_the_events_of_one_task_are_not_those_of_another(journal: Journal) -> None:
    one, two = await new_task(journal, "t1"), await new_task(journal, "t2")
    await journal.append(one.lease, texts("one"))
    await journal.append(two.lease, texts("two"))
    assert [item.event for item in await journal.events("t2", 1, 10)] == list(texts("two"))


async def test_a_finished_segment_keeps_its_questions_whole_and_frees_the_task(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    await journal.finish(lease, [StateChange(TaskState.INPUT_REQUIRED)], [QUESTION])
    row = await journal.task("t1")
    assert row is not None
    assert (row.state, row.owner, row.pending) == (TaskState.INPUT_REQUIRED, None, (QUESTION,))


async def test_of_two_claims_of_a_waiting_task_one_wins(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    await journal.finish(lease, [StateChange(TaskState.INPUT_REQUIRED)], [QUESTION])
    answer = [ConfirmationAccepted(ToolCallConfirmation("call-1", "proceed_once"), "terminal")]
    waiting = await row_of(journal)
    first = journal.claim(waiting, answer, "owner-a", LEASE)
    second = journal.claim(waiting, answer, "owner-b", LEASE)
    taken, refused = await first, await second
    assert taken is not None
    assert refused is None
    assert (taken.row.state, taken.row.epoch, taken.row.pending) == (TaskState.WORKING, 2, ())
    assert len([item for item in await journal.events("t1", 0, 10) if item.event == answer[0]]) == 1


async def test_an_owner_that_lost_its_lease_cannot_write_any_more(journal: Journal) -> None:
    taken = await new_task(journal)
    assert await journal.take_over(taken.row, "owner-b", LEASE) is not None
    with pytest.raises(StaleLease, match="taken over"):
        await journal.append(taken.lease, texts("late"))
    with pytest.raises(StaleLease):
        await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
    row = await journal.task("t1")
    assert row is not None
    assert (row.seq, row.owner) == (1, "owner-b")
    assert await journal.renew([taken.lease], LEASE) == [taken.lease]


async def test_of_two_that_take_over_one_wins(journal: Journal) -> None:
    row = (await new_task(journal)).row
    assert await journal.take_over(row, "owner-b", LEASE) is not None
    assert await journal.take_over(row, "owner-c", LEASE) is None


async def test_a_task_whose_lease_was_renewed_since_it_was_read_is_not_taken_over(journal_place: JournalPlace) -> None:
    now = [1000.0]
    journal = await journal_place.open(lambda: now[0])
    try:
        taken = await new_task(journal)
        now[0] += LEASE + 1
        row = await row_of(journal)
        assert await journal.renew([taken.lease], LEASE) == []
        assert await journal.take_over(row, "owner-b", LEASE) is None
        await journal.append(taken.lease, texts("lives"))
    finally:
        await journal.aclose()


async def test_inbox_messages_keep_the_segment_open_and_stay_until_taken(
    journal: Journal,
) -> None:
    lease = (await new_task(journal)).lease
    message = Prompt("m2", "And this")
    await journal.post(await row_of(journal), [message])
    end = [StateChange(TaskState.COMPLETED)]
    for _ in range(2):
        finished = await journal.finish(lease, end, [])
        assert (list(finished.inbox), list(finished.deliveries)) == ([message], [])
    assert list(await journal.inbox("t1")) == [message]
    assert [item.event for item in await journal.take(lease, [message], 1)] == [message]
    assert list(await journal.inbox("t1")) == []
    assert [item.event for item in (await journal.finish(lease, end, [])).deliveries] == end
    assert (await row_of(journal)).state is TaskState.COMPLETED


async def test_what_comes_while_a_message_is_taken_stays(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    messages = [Prompt("m2", "And this"), Prompt("m3", "And that")]
    for message in messages:
        await journal.post(await row_of(journal), [message])
    await journal.take(lease, messages[:1], 1)
    assert list(await journal.inbox("t1")) == messages[1:]


async def test_a_segment_may_end_whatever_came(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    await journal.post(await row_of(journal), [Prompt("m2", "And this")])
    await journal.finish(lease, [StateChange(TaskState.CANCELED)], [], discard_inbox=True)
    assert list(await journal.inbox("t1")) == []
    assert (await row_of(journal)).state is TaskState.CANCELED


async def test_a_task_that_nobody_runs_has_no_inbox(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    running = await row_of(journal)
    await journal.finish(lease, [StateChange(TaskState.COMPLETED)], [])
    for row in (running, await row_of(journal)):
        with pytest.raises(StaleLease, match="not running"):
            await journal.post(row, [Prompt("m2", "And this")])


async def test_of_two_answers_for_a_running_task_one_is_left_for_its_owner(journal: Journal) -> None:
    lease = (await new_task(journal)).lease
    row = await row_of(journal)
    answer = ConfirmationAccepted(ToolCallConfirmation("call-1", "proceed_once"), "terminal")
    other = ConfirmationAccepted(ToolCallConfirmation("call-2", "proceed_once"), "terminal")
    await journal.post(row, [answer])
    with pytest.raises(StaleLease, match="has been answered"):
        await journal.post(row, [other, answer])
    await journal.take(lease, [answer], 1)
    with pytest.raises(StaleLease, match="has been answered"):
        await journal.post(row, [answer])
    assert list(await journal.inbox("t1")) == []


async def test_a_write_that_fails_does_not_take_the_others_of_its_group_along(journal: Journal) -> None:
    taken = await new_task(journal)
    other = await new_task(journal, "t2")
    await journal.take_over(taken.row, "owner-b", LEASE)
    good = journal.append(other.lease, texts("kept"))
    bad = journal.append(taken.lease, texts("refused"))
    also_good = journal.append(other.lease, texts("kept too"), full_sync=True)
    await good
    with pytest.raises(StaleLease):
        await bad
    await also_good
    assert [item.event for item in await journal.events("t2", 1, 10)] == list(texts("kept", "kept too"))


async def test_a_session_is_all_tasks_of_its_context_without_increments(journal: Journal) -> None:
    first = await new_task(journal, "t1", "c1")
    await new_task(journal, "t2", "c1")
    await new_task(journal, "t3", "c2")
    await journal.append(first.lease, [*texts("a", "b"), StateChange(TaskState.COMPLETED)])
    events = [(task, item.event) for task, item in await journal.session("c1")]
    prompt = Prompt("m1", "Fix it")
    assert events == [("t1", prompt), ("t1", StateChange(TaskState.COMPLETED)), ("t2", prompt)]


@pytest.mark.slow
async def test_a_message_is_looked_for_without_reading_the_others(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await new_task(journal)
    row = await row_of(journal)
    for number in range(INBOX_MESSAGES - 1):
        await journal.post(row, [Prompt(f"w{number}", "Wait")])
    read: list[str] = []

    def counted(values: Any) -> AgentEvent:
        read.append(str(values))
        return event_from_json(values)

    monkeypatch.setattr(rows, "event_from_json", counted)
    await journal.post(row, [Prompt("w", "Wait")])
    assert read == []
    with pytest.raises(RepeatedMessage):
        await journal.post(row, [Prompt("w", "Wait")])
    assert [delivery.event for delivery in await journal.of_message("t1", "w7")] == [Prompt("w7", "Wait")]
    assert [(delivery.seq, delivery.event) for delivery in await journal.of_message("t1", "m1")] == [
        (1, Prompt("m1", "Fix it"))
    ]
    assert len(read) == 3


async def test_an_answer_that_waits_with_what_is_no_json_is_found_by_its_type(journal: Journal) -> None:
    await new_task(journal)
    row = await row_of(journal)
    confirmation = ToolCallConfirmation("call-1", "proceed_once", ModifiedFileDetails('\x00 \u2028 "type":"Prompt"'))
    answer = ConfirmationAccepted(confirmation, "\x00")
    odd = Prompt("m2", "Go on", metadata={"number": float("nan")})
    await journal.post(row, [odd, answer])
    assert await journal.waiting("t1", ConfirmationAccepted) == [answer]
    with pytest.raises(StaleLease, match="has been answered"):
        await journal.post(row, [answer])
