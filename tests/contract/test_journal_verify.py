"""The check of a journal: faults that were put in are each found, on each kind, and by the task that they are in."""

import asyncio
import re
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from isthmus.events import TextContent
from isthmus.journal.opening import open_journal
from isthmus.journal.place import JournalPlace
from isthmus.journal.port.task_rows import Lease
from isthmus.journal.upkeep.task_check import PROBLEMS
from support.postgres import run_sql
from support.whole_journals import copied, fill, problems_of

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KEYS = {
    "ENDED": "(SELECT key FROM tasks WHERE id = 'ended')",
    "WORKS": "(SELECT key FROM tasks WHERE id = 'works')",
}
"""Keys of tasks, by the words that stand for them in the statements."""
FAULTS = {
    "lost event": ("DELETE FROM events WHERE task = ENDED AND seq = 3", "ended", "event 3 is missing"),
    "lost last event": ("DELETE FROM events WHERE task = ENDED AND seq = 4", "ended", "that is event 3"),
    "lost events": ("DELETE FROM events WHERE task = ENDED AND seq IN (2, 3)", "ended", "events 2 to 3 are missing"),
    "seq": ("UPDATE tasks SET seq = 7 WHERE id = 'ended'", "ended", "event 7 is the last one, but that is event 4"),
    "number": ("UPDATE events SET seq = 0 WHERE task = ENDED AND seq = 1", "ended", "event 0 has no number"),
    "body": ("UPDATE events SET body = '{' WHERE task = ENDED AND seq = 3", "ended", "event 3 cannot be read"),
    "shape": (
        """UPDATE events SET body = '{"type":"TextContent"}' WHERE task = ENDED AND seq = 3""",
        "ended",
        "event 3 cannot be read .*message_id",
    ),
    "newer event": (
        """UPDATE events SET body = '{"type":"Hologram"}' WHERE task = ENDED AND seq = 3""",
        "ended",
        "event 3 is of the type 'Hologram', which this version does not know",
    ),
    "type": ("UPDATE events SET type = 'Prompt' WHERE task = ENDED AND seq = 3", "ended", "its row says 'Prompt'"),
    "state": ("UPDATE tasks SET state = 'completed' WHERE id = 'ended'", "ended", "last change of state is to failed"),
    "state again": ("UPDATE tasks SET state = 'working' WHERE id = 'ended'", "ended", "its last event is the change"),
    "newer state": ("UPDATE tasks SET state = 'dreaming' WHERE id = 'ended'", "ended", "state is 'dreaming', which"),
    "error": ("UPDATE tasks SET error = NULL WHERE id = 'ended'", "ended", "last change of state says .*it broke"),
    "pending": ("UPDATE tasks SET pending = '[]' WHERE id = 'asks'", "asks", "'call-1' waits for an answer"),
    "other pending": (
        "UPDATE tasks SET pending = replace(pending, 'a.py', 'b.py') WHERE id = 'asks'",
        "asks",
        "pending call 'call-1' is not the one of its events",
    ),
    "bad pending": ("UPDATE tasks SET pending = '[{}]' WHERE id = 'asks'", "asks", "pending calls cannot be read"),
    "answered pending": (
        "UPDATE tasks SET pending = (SELECT o.pending FROM tasks AS o WHERE o.id = 'asks') WHERE id = 'answered'",
        "answered",
        "is not the one of its events",
    ),
    "lost message": ("DELETE FROM messages WHERE task = ENDED", "ended", "event 1 is not in the table of messages"),
    "wrong message": ("UPDATE messages SET seq = 2 WHERE task = ENDED", "ended", "'m-ended' at event 2, which is"),
    "inbox": ('UPDATE inbox SET body = \'{"type":"Prompt"}\' WHERE task = WORKS', "works", "in its inbox cannot"),
    "queue": ("UPDATE tasks SET tag = 9 WHERE id = 'ended'", "ended", "'failed', but waits in the queue"),
    "push": ("UPDATE pushes SET seq = 99 WHERE task = ENDED", "ended", "'push-1' has got event 99; the task has 4"),
    "lost task": ("DELETE FROM tasks WHERE key = WORKS", "", "4 rows of table inbox are of no task"),
    "chat": ("UPDATE chats SET count = 3", "", "the saved chat 'one' of 'alice' cannot be read"),
    "tags": ("DELETE FROM queue", "", "the table queue of .* has 0 rows"),
}
POSTGRES_FAULTS = {
    "inbox counter": ("UPDATE tasks SET inbox = 5 WHERE id = 'works'", "works", "4 events are in its inbox, .*says 5"),
    "size": ("UPDATE tasks SET size = size + 1 WHERE id = 'ended'", "ended", "characters .*its row says"),
    "next key": ("SELECT setval(pg_get_serial_sequence('tasks', 'key'), 2)", "", "next key of table tasks would be 3"),
}
IN_BOTH = ("lost event", "seq", "pending", "lost message", "lost task", "queue")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, postgres_server: "Postgres") -> dict[str, JournalPlace]:
    """Return a whole journal of each kind."""
    file = JournalPlace(tmp_path_factory.mktemp("whole") / "journal.sqlite")
    database = JournalPlace(Path(), postgres_server.database())

    async def make() -> None:
        journal = await open_journal(file.file)
        await fill(journal)
        await journal.aclose()
        await copied(file, database)

    asyncio.run(make())
    return {"sqlite": file, "postgres": database}


async def faulty(place: JournalPlace, fault: str, folder: Path, server: "Postgres") -> JournalPlace:
    """Return a copy of a journal with a fault in it."""
    for word, key in KEYS.items():
        fault = fault.replace(word, key)
    if place.url:
        url = server.copy_of(place.url)
        await run_sql(url, fault)
        return JournalPlace(Path(), url)
    path = folder / "faulty.sqlite"
    shutil.copy(place.file, path)
    with sqlite3.connect(path) as connection:
        assert connection.execute(fault).rowcount > 0
    connection.close()
    return JournalPlace(path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("sqlite", name) for name in FAULTS), *(("postgres", name) for name in (*IN_BOTH, *POSTGRES_FAULTS))],
)
async def test_each_fault_is_found(
    kind: str, name: str, places: dict[str, JournalPlace], tmp_path: Path, postgres_server: "Postgres"
) -> None:
    fault, task_id, said = {**FAULTS, **POSTGRES_FAULTS}[name]
    found = await problems_of(await faulty(places[kind], fault, tmp_path, postgres_server))
    assert [problem for problem in found if problem.task_id == task_id and re.search(said, problem.text)], found
    others = {problem.task_id for problem in found} - {task_id, ""}
    assert not others


async def test_events_with_the_names_of_older_versions_are_no_faults(
    places: dict[str, JournalPlace], tmp_path: Path, postgres_server: "Postgres"
) -> None:
    former = """UPDATE events SET type = 'EditorContext', body = '{"type":"EditorContext","text":"a.py"}'"""
    place = await faulty(places["sqlite"], f"{former} WHERE task = ENDED AND seq = 3", tmp_path, postgres_server)
    assert not await problems_of(place)


async def test_the_problems_of_one_task_are_bounded(places: dict[str, JournalPlace], tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    shutil.copy(places["sqlite"].file, path)
    with sqlite3.connect(path) as connection:
        rows = [(seq, "x" * 1000) for seq in range(5, 500)]
        query = "INSERT INTO events SELECT key, ?, 1.0, 'Prompt', ? FROM tasks WHERE id = 'ended'"
        connection.executemany(query, rows)
    connection.close()
    found = [problem.text for problem in await problems_of(JournalPlace(path)) if problem.task_id == "ended"]
    assert len(found) == PROBLEMS + 1
    assert found[-1] == "476 more problems"  # 495 bodies and the last number, of which 20 are told
    assert max(map(len, found)) < 200


async def test_a_damaged_file_is_told_and_does_not_end_in_a_traceback(
    places: dict[str, JournalPlace], tmp_path: Path
) -> None:
    path = tmp_path / "journal.sqlite"
    whole = places["sqlite"].file.read_bytes()
    path.write_bytes(whole[:20_000] + bytes(8192) + whole[28_192:])
    found = await problems_of(JournalPlace(path))
    assert any("malformed" in problem.text for problem in found)


async def test_a_journal_is_checked_while_a_process_writes_to_it(tmp_path: Path) -> None:
    place = JournalPlace(tmp_path / "journal.sqlite")
    journal = await open_journal(place.file)
    await fill(journal)
    works = await journal.task("works")
    assert works is not None
    assert works.owner is not None
    lease = Lease("works", works.owner, works.epoch)
    try:
        checks = [asyncio.create_task(problems_of(place)) for _ in range(3)]
        while not all(check.done() for check in checks):
            await journal.append(lease, [TextContent("t", "word")])
        assert [await check for check in checks] == [[], [], []]
    finally:
        await journal.aclose()
