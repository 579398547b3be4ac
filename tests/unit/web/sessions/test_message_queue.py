"""Messages that wait in sessions: sent in order when turns end well, once, also after the end of a process."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from isthmus.client import CommandMessage, Execution, InvalidRequest, PromptMessage, Turn
from isthmus.development_tool import CommandExecutionStatus
from isthmus.events import Command, Prompt, StateChange, TaskState
from isthmus.journal.port.base import RepeatedMessage
from isthmus.journal.port.sessions import QueuedMessage
from isthmus.journal.port.task_rows import Lease, NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.web.sessions.message_queue import (
    GATHER_SECONDS,
    BadMessageError,
    MessageQueue,
    WrittenMessage,
    edited,
    shown,
    written_from,
)
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio
WAIT = 10.0
SETTINGS = {"workspace_path": "/work"}
DONE, FAILED = StateChange(TaskState.COMPLETED), StateChange(TaskState.FAILED)


class JournalAgent(MemoryAgent):
    """An agent whose tasks are rows of a journal; they work until a test ends them."""

    def __init__(self, journal: SqliteJournal) -> None:
        super().__init__(lambda _: [])
        self.journal = journal
        self.began: asyncio.Queue[tuple[str, Lease]] = asyncio.Queue()
        self.refuses = ""

    @override
    async def prompt(self, message: PromptMessage) -> Turn:
        if self.refuses:
            raise InvalidRequest(self.refuses)
        task = NewTask(f"task-{message.message_id}", "c", "/work", message.text, "", message.message_id, "digest")
        try:
            claimed = await self.journal.create(task, [Prompt(message.message_id, message.text)], "here", 60)
        except RepeatedMessage as repeated:
            return await super().prompt(PromptMessage(f"repeated {repeated.task_id}", settings=SETTINGS))
        self.began.put_nowait((message.text, claimed.lease))
        return await super().prompt(PromptMessage(message.text, settings=SETTINGS))

    @override
    async def execute(self, command: CommandMessage) -> Execution:
        self.began.put_nowait((f"{command.path} {command.args}", Lease("", "", 0)))
        return Execution(CommandExecutionStatus.STARTED)

    async def next(self) -> tuple[str, Lease]:
        """Return the next message that began a turn, and the lease of its task."""
        async with asyncio.timeout(WAIT):
            return await self.began.get()


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    opened = await SqliteJournal.open(tmp_path / "journal.db")
    yield opened
    await opened.aclose()


@pytest.fixture
def agent(journal: SqliteJournal) -> JournalAgent:
    return JournalAgent(journal)


async def begin(journal: SqliteJournal, end: StateChange | None = DONE) -> Lease:
    claimed = await journal.create(NewTask("first", "c", "/work", "First"), [Prompt("m", "First")], "here", 60)
    if end is not None:
        await journal.finish(claimed.lease, [end], [])
    return claimed.lease


async def wait(journal: SqliteJournal, *texts: str) -> None:
    """Let messages wait; each has its text as its id."""
    for text in texts:
        await journal.sessions.put("c", "", QueuedMessage(text, WrittenMessage(text).body))


@asynccontextmanager
async def sending(journal: SqliteJournal, agent: JournalAgent) -> AsyncGenerator[MessageQueue]:
    queue = MessageQueue(journal, lambda _: agent, look_seconds=0.05)
    running = asyncio.create_task(queue.run())
    try:
        yield queue
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def emptied(journal: SqliteJournal) -> None:
    """Wait until no message waits."""
    changed = asyncio.Event()
    end = journal.sessions.changes.watch(lambda _, __, ___: changed.set())
    async with asyncio.timeout(WAIT):
        while await journal.sessions.queue("c", ""):
            await changed.wait()
            changed.clear()
    end()


async def test_messages_are_sent_in_order_each_when_the_turn_before_has_ended(
    journal: SqliteJournal, agent: JournalAgent
) -> None:
    lease = await begin(journal, None)
    await wait(journal, "one", "two")
    async with sending(journal, agent):
        await journal.append(lease, [StateChange(TaskState.WORKING)])
        assert agent.began.empty()
        await journal.finish(lease, [DONE], [])
        for text in ("one", "two"):
            begun, lease = await agent.next()
            assert begun == text
            assert agent.began.empty()
            await journal.finish(lease, [DONE], [])
        await emptied(journal)
    assert agent.began.empty()


async def test_after_a_failed_turn_messages_wait_for_the_user(journal: SqliteJournal, agent: JournalAgent) -> None:
    await begin(journal, FAILED)
    await wait(journal, "one", "two")
    async with sending(journal, agent) as queue:
        assert await queue.send("c", "", "two") == ""
        begun, lease = await agent.next()
        assert begun == "two"
        assert "has ended" in await queue.send("c", "", "one")
        await journal.finish(lease, [FAILED], [])
        assert await queue.send("c", "", "gone") == ""
    assert [message.id for message in await journal.sessions.queue("c", "")] == ["one"]
    assert agent.began.empty()


async def test_what_was_sent_before_the_process_ended_is_not_sent_again(
    journal: SqliteJournal, agent: JournalAgent
) -> None:
    await begin(journal)
    await wait(journal, "one", "/stats now", "two")
    # The process ended after the turns had begun, and before the messages were removed.
    for task in (
        NewTask("again", "c", "/work", "one", "", "one", "other digest"),
        NewTask("command", "c", "/work", "/stats now", "", "/stats now", "other digest"),
    ):
        event = Prompt("one", "one") if task.task_id == "again" else Command("/stats now", ("stats",), "now")
        claimed = await journal.create(task, [event], "here", 60)
        await journal.finish(claimed.lease, [DONE], [])
    async with sending(journal, agent):
        begun, lease = await agent.next()
        assert begun == "two"
        await journal.finish(lease, [DONE], [])
        await emptied(journal)
    assert agent.began.empty()


async def test_a_message_that_is_refused_waits_with_the_reason_until_it_is_changed(
    journal: SqliteJournal, agent: JournalAgent
) -> None:
    await begin(journal)
    agent.refuses = "no such model"
    await wait(journal, "one", "two")
    changed = asyncio.Event()
    journal.sessions.changes.watch(lambda _, __, ___: changed.set())
    async with sending(journal, agent) as queue, asyncio.timeout(WAIT):
        await changed.wait()
        found = await journal.sessions.queue("c", "")
        assert [message.problem for message in found] == ["no such model", ""]
        agent.refuses = ""
        await journal.sessions.put("c", "", QueuedMessage("one", edited(found[0], {"text": "one, edited"}).body))
        queue.wake()
        assert (await agent.next())[0] == "one, edited"


async def test_a_message_that_cannot_be_read_does_not_hold_those_of_other_sessions(
    journal: SqliteJournal, agent: JournalAgent
) -> None:
    await begin(journal)
    other = await journal.create(NewTask("other", "a", "/work", "Other"), [Prompt("o", "Other")], "here", 60)
    await journal.finish(other.lease, [DONE], [])
    await journal.sessions.put("a", "", QueuedMessage("broken", "not JSON"))
    await wait(journal, "Second")
    async with sending(journal, agent):
        assert (await agent.next())[0] == "Second"


async def test_a_busy_server_is_not_asked_for_messages_while_none_waits(
    journal: SqliteJournal, agent: JournalAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, look = asyncio.Queue[None](), journal.sessions.with_queues

    async def counted() -> Sequence[tuple[str, str]]:
        looks.put_nowait(None)
        return await look()

    monkeypatch.setattr(journal.sessions, "with_queues", counted)
    queue = MessageQueue(journal, lambda _: agent, look_seconds=WAIT)
    running = asyncio.create_task(queue.run())
    try:
        await asyncio.wait_for(looks.get(), WAIT)
        await begin(journal)  # changes of tasks alone lead to no look
        await asyncio.sleep(4 * GATHER_SECONDS)  # delay: the time in which a look would come
        assert looks.empty()
        await wait(journal, "Second")
        queue.wake()
        assert (await agent.next())[0] == "Second"
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_commands_are_executed(journal: SqliteJournal, agent: JournalAgent) -> None:
    await begin(journal)
    await wait(journal, "/memory add  tides")
    async with sending(journal, agent):
        assert (await agent.next())[0] == "('memory',) add  tides"
        await emptied(journal)


BAD: tuple[dict[str, Any], ...] = (
    {},
    {"text": " "},
    {"text": 1},
    {"text": "a", "images": [{}]},
    {"text": "a", "images": "x"},
    {"text": "a", "mode": None},
)


@pytest.mark.parametrize("given", BAD)
def test_bad_messages_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadMessageError, match="expected"):
        written_from(given)


def test_images_are_kept_and_shown_by_their_names() -> None:
    image = {"data": "aGk=", "mediaType": "image/png", "name": "a.png"}
    written = written_from({"text": "Look", "mode": "plan", "images": [{**image, "more": "x"}]})
    assert json.loads(written.body)["images"] == [image]
    assert shown(QueuedMessage("m", written.body, "held")) == {
        "id": "m",
        "text": "Look",
        "mode": "plan",
        "model": "",
        "images": ["a.png"],
        "problem": "held",
    }
