"""Journals with everything that one can hold, and all that is in one, for tests of copies and checks."""

from typing import Any

from isthmus.client import PushTarget, UserLimits
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    GenericDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.events import (
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
)
from isthmus.journal.opening import snapshot_of
from isthmus.journal.place import JournalPlace
from isthmus.journal.port.base import Journal
from isthmus.journal.port.pushes import PushRow
from isthmus.journal.port.queue import QueueScope
from isthmus.journal.port.saved_chats import ChatPlace, SavedChat
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sql.tables import TABLES
from isthmus.journal.upkeep.copying import copy_journal, started_tag
from isthmus.journal.upkeep.verifying import Problem, verify

OWNER = "an-owner"
QUESTION = ToolCall(
    "call-1",
    ToolCallStatus.PENDING,
    "write_file",
    {"path": "a.py", "n": 9007199254740993},
    confirmation_request=ConfirmationRequest(
        (ConfirmationOption("yes", "Yes"),), generic_details=GenericDetails("Sure?")
    ),
)


async def fill(journal: Journal) -> None:
    """Write tasks in every state, with messages, answers, inboxes, pushes, chats and a queue."""
    await _ended(journal)
    await _asking(journal, "asks")
    await _answered(journal)
    await _at_work(journal)
    await _removed(journal)
    for user in ("alice", "alice", "bob"):
        task = NewTask(f"queued-{user}-{await journal.queue.length()}", "c2", "/work", "Later", user, label="gpu")
        await journal.queue.add(task, [Prompt(f"q-{user}", "Later")], UserLimits(max_running=7))
    await journal.queue.take(OWNER, 60, 1, QueueScope(("gpu",)))
    place = ChatPlace("alice", "/work")
    await journal.sessions.rename("c1", "alice", "A name")
    await journal.chats.save(place, SavedChat("one", "Fix it", 2, "ended"), [{"a": 1}, {"b": ["ü\0"]}])


async def _ended(journal: Journal) -> None:
    task = NewTask("ended", "c1", "/work", "Fix „it“ \U0001f600", "alice", "m-ended", "digest")
    taken = await journal.create(task, [Prompt("m-ended", "Fix it\0\x1b[31m")], OWNER, 60)
    target = PushTarget("https://example.org/hook", "push-1", "token", "Bearer", "secret")
    await journal.pushes.add(PushRow("ended", target, "a2a", "urn:x", 1), 16)
    await journal.append(taken.lease, [StateChange(TaskState.WORKING), TextContent("t", "words " * 30)])
    await journal.finish(taken.lease, [StateChange(TaskState.FAILED, "it broke", "broken")], [])


async def _asking(journal: Journal, task_id: str) -> None:
    taken = await journal.create(NewTask(task_id, "c1", "/work", "Ask me"), [Prompt("m-asks", "Ask me")], OWNER, 60)
    await journal.append(taken.lease, [StateChange(TaskState.WORKING), ToolCallUpdate(QUESTION)])
    await journal.finish(taken.lease, [StateChange(TaskState.INPUT_REQUIRED)], [QUESTION])


async def _answered(journal: Journal) -> None:
    await _asking(journal, "answered")
    row = await journal.task("answered")
    assert row is not None
    answer = ConfirmationAccepted(ToolCallConfirmation("call-1", "yes"), "test", "m-answer")
    taken = await journal.claim(row, [answer], OWNER, 60)
    assert taken is not None
    done = ToolCall("call-1", ToolCallStatus.SUCCEEDED, "write_file", {"path": "a.py"})
    await journal.append(taken.lease, [StateChange(TaskState.WORKING), ToolCallUpdate(done)])
    await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])


async def _at_work(journal: Journal) -> None:
    task = NewTask("works", "c3", "/work", "Work", parent="ended")
    taken = await journal.create(task, [Prompt("m-works", "Work")], OWNER, 60)
    await journal.append(taken.lease, [StateChange(TaskState.WORKING)])
    waiting = [Prompt(f"later-{number}", "And this") for number in range(3)]
    for event in (*waiting, StateChange(TaskState.CANCELED)):
        await journal.post(taken.row, [event])


async def _removed(journal: Journal) -> None:
    taken = await journal.create(NewTask("gone", "c4", "/work", "Go"), [Prompt("m-gone", "Go")], OWNER, 60)
    await journal.append(taken.lease, [TextContent("t", "word") for _ in range(5)])
    await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
    await journal.removal.mark(["gone"])
    assert not await journal.removal.remove("gone", 2)


async def content(place: JournalPlace) -> dict[str, Any]:
    """Return everything that a copy of a journal has, too."""
    async with snapshot_of(place) as snapshot:
        found: dict[str, Any] = {"agent": await snapshot.agent(), "started": await started_tag(snapshot)}
        for table in TABLES:
            found[table.name] = [row async for rows in snapshot.rows(table) for row in rows]
    return found


async def problems_of(place: JournalPlace) -> list[Problem]:
    """Return what is wrong in a journal."""
    found: list[Problem] = []
    await verify(place, found.append)
    return found


async def copied(source: JournalPlace, target: JournalPlace) -> JournalPlace:
    """Copy a journal; return the place of the copy."""
    await copy_journal(source, target)
    return target
