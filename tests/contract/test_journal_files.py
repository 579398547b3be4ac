"""Files of tasks in the journal of several machines, and how they come to another machine's data folder."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.agent.session.session import Session
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.engine.port.retention import Retention
from isthmus.events import Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.internal_events import ReferredContent, ToolResultRecorded
from isthmus.journal.port.base import JournalUnavailable
from isthmus.journal.port.task_files import MAXIMUM_FILE_BYTES, StoredFile, TaskFileStore
from isthmus.journal.postgres.journal import PostgresJournal
from isthmus.journal.postgres.journal import files as postgres_files
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.media import Media
from isthmus.parts.files import carried as carried_files
from isthmus.parts.files.carried import CarriedFiles, content_of, write_new
from support.journal_tasks import new_task
from support.postgres import postgres, run_sql

if TYPE_CHECKING:
    from support.postgres import Postgres

pytestmark = pytest.mark.anyio

A = "/srv/a b/outputs"


@pytest.fixture
def url(postgres_server: "Postgres") -> str:
    return postgres_server.database()


@pytest.fixture
async def journal(url: str) -> AsyncIterator[PostgresJournal]:
    opened = await PostgresJournal.open(url)
    yield opened
    await opened.aclose()


@pytest.fixture
def store(journal: PostgresJournal) -> TaskFileStore:
    assert journal.files is not None
    return journal.files


def session_with(*texts: str, media: tuple[Media, ...] = ()) -> Session:
    session = Session("c1")
    session.apply(Prompt("m1", "Look.", media=media), "t1")
    for text in texts:
        session.apply(ReferredContent(text), "t1")
    return session


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_file_is_found_and_read_by_its_task_and_name(store: TaskFileStore) -> None:
    data = bytes(range(256)) * 100
    await store.keep("t1", "a.png", A, data)
    await store.keep("t1", "b.png", A, b"")
    await store.keep("t2", "a.png", A, b"other")
    found = await store.find(["t1"], ["a.png", "c.png"])
    assert found == [StoredFile("t1", "a.png", len(data), (A,))]
    assert await store.read("t1", "a.png") == data
    assert await store.read("t1", "b.png") == b""
    assert await store.read("t1", "c.png") is None


async def test_a_name_keeps_its_content_unless_the_same_folder_has_more_of_it(store: TaskFileStore) -> None:
    for folder, data in ((A, b"one"), (A, b"one, two"), (A, b"less"), ("/srv/b/outputs", b"of another server")):
        await store.keep("t1", "a.txt", folder, data)
    assert await store.read("t1", "a.txt") == b"one, two"


async def test_each_folder_of_a_file_is_noted_once(store: TaskFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_files, "MAXIMUM_FOLDERS", 3)
    await store.keep("t1", "a.txt", A, b"one")
    await store.keep("t1", "b.txt", A, b"two")
    found = await store.find(["t1"], ["a.txt"])
    for folder in ("/b/outputs", "/b/outputs", A, "/c/outputs", "/d/outputs"):
        await store.add_folder(found, folder)
    found = await store.find(["t1"], ["a.txt", "b.txt"])
    assert [file.folders for file in found] == [(A, "/b/outputs", "/c/outputs"), (A,)]


async def test_files_count_as_their_users_and_go_with_their_task(
    journal: PostgresJournal, store: TaskFileStore, url: str
) -> None:
    taken = await new_task(journal)
    await journal.finish(taken.lease, [StateChange(TaskState.COMPLETED)], [])
    before, share = await journal.removal.size(), (await journal.removal.shares())[""]
    for number in range(20):
        await store.keep("t1", f"{number}.txt", A, bytes(1000))
    await store.keep("t2", "a.txt", A, b"of another task")
    assert await journal.removal.size() == before + 20_015
    assert await journal.removal.shares() == {"": share + 20_000}
    assert await Retention(journal).delete(["t1"]) == ["t1"]
    assert await run_sql(url, "SELECT array_agg(task) FROM files") == ["t2"]


async def test_files_whose_task_never_came_are_removed_after_an_hour(
    journal: PostgresJournal, store: TaskFileStore, url: str
) -> None:
    await new_task(journal)
    for task in ("t1", "t2", "t3"):
        await store.keep(task, "a.txt", A, b"one")
    await run_sql(url, "UPDATE files SET kept = now() - interval '61 minutes' WHERE task <> 't3'")
    other = postgres_files.PostgresFiles(journal.read)
    await other.keep("t1", "b.txt", A, b"two")
    assert await run_sql(url, "SELECT array_agg(task || name ORDER BY task, name) FROM files") == [
        *("t1a.txt", "t1b.txt", "t3a.txt")
    ]


async def test_a_journal_of_one_machine_has_no_files(tmp_path: Path) -> None:
    journal = await SqliteJournal.open(tmp_path / "journal.sqlite")
    assert journal.files is None
    await journal.aclose()


async def test_what_a_session_names_is_fetched_and_named_where_it_is_now(store: TaskFileStore, tmp_path: Path) -> None:
    a, b, c = (tmp_path / name / "outputs" for name in "abc")
    for name in ("call-1.txt", "dot.png", "other.txt"):
        write_new(a / "t1", name, name.encode())
    await CarriedFiles(a, store).keep("t1", ["call-1.txt", "dot.png", "other.txt", "missing"])

    def at(folder: Path) -> Session:
        media = (Media("image/png", folder / "t1" / "dot.png"),)
        return session_with(f"All of it is in {folder}/t1/call-1.txt.", media=media)

    session = at(a)
    await CarriedFiles(b, store).fetch(session)
    assert session.messages == at(b).messages
    assert files_below(b) == {"t1/call-1.txt": b"call-1.txt", "t1/dot.png": b"dot.png"}
    assert (b / "t1").stat().st_mode & 0o777 == 0o700
    assert (b / "t1" / "dot.png").stat().st_mode & 0o777 == 0o600
    # What was said at the second machine has its paths.
    session = at(b)
    await CarriedFiles(c, store).fetch(session)
    assert session.messages == at(c).messages
    assert files_below(c) == files_below(b)


async def test_a_session_costs_at_most_one_query_and_none_without_files(
    journal: PostgresJournal, tmp_path: Path
) -> None:
    queries: list[str] = []

    async def read(query: str, values: Sequence[Any], decode: Callable[[Any], Any]) -> list[Any]:
        queries.append(query)
        return await journal.read(query, values, decode)

    outputs = tmp_path / "outputs"
    files = CarriedFiles(outputs, postgres_files.PostgresFiles(read))
    write_new(outputs / "t1", "call.txt", b"whole")
    await files.keep("t1", ["call.txt"])
    queries.clear()
    await files.fetch(session_with("Nothing is kept.", "/outputs/", f"{A}/t2/of-another-session.txt"))
    await files.fetch(session_with(f"All of it is in {outputs}/t1/call.txt]"))
    assert queries == []
    await files.fetch(session_with(f"{outputs}/t1/one.txt, {A}/t1/two.txt, {A}/t1/three.txt"))
    assert len(queries) == 1


async def test_a_file_that_is_too_large_stays_and_the_log_says_so(
    store: TaskFileStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sizes: dict[str, int] = {}
    write_new(tmp_path / "t1", "large.txt", bytes(MAXIMUM_FILE_BYTES + 1))
    write_new(tmp_path / "t1", "largest.txt", bytes(MAXIMUM_FILE_BYTES))
    files = CarriedFiles(tmp_path, store)
    for _ in range(2):
        await files.keep("t1", ["large.txt", "largest.txt"], sizes)
    found = await store.find(["t1"], ["large.txt", "largest.txt"])
    assert [(file.name, file.size) for file in found] == [("largest.txt", MAXIMUM_FILE_BYTES)]
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path / 't1' / 'large.txt'} stays on this machine: it has more than 16777216 bytes"
    ]


async def test_a_call_that_is_done_names_its_own_files(store: TaskFileStore, tmp_path: Path) -> None:
    names = ("call_1-0123abcd.txt", "call_1-89abcdef.png", "call_10-0123abcd.txt", "call_1-x-0123abcd.txt")
    for name in names:
        write_new(tmp_path / "t1", name, b"")
    files = CarriedFiles(tmp_path, store)
    call = ToolCall("call 1", ToolCallStatus.EXECUTING, "run_shell_command", {})
    assert files.named(ToolCallUpdate(call), "t1") == set()
    assert files.named(ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED)), "t1") == {*names[:2]}
    assert files.named(ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED)), "t2") == set()
    text = f"It is in {tmp_path}/t1/x.txt. {A}/t1/elsewhere.txt, {tmp_path}/t2/other.txt {tmp_path}/t1/../y.txt"
    assert files.named(ToolResultRecorded("call 1", text), "t1") == set()


HOSTILE_NAMES = ("../x", "../../x", "/tmp/x", "..", ".", "", "a/b", "a\n", "ok.txt")


async def test_a_lying_row_writes_nothing_outside_of_the_tasks_folder(
    store: TaskFileStore, tmp_path: Path, url: str
) -> None:
    outputs, outside = tmp_path / "data" / "outputs", tmp_path / "outside"
    outside.mkdir()
    for name in HOSTILE_NAMES:
        await run_sql(url, "INSERT INTO files VALUES ('t1', $1, $2, now(), 'x')", name, [A, "", "/", "relative", "\n"])
    said = " ".join(f"{folder}/t1/{name}" for name in HOSTILE_NAMES for folder in (A, outputs))
    session = session_with(said, media=tuple(Media("image/png", Path(f"{A}/t1/{name}")) for name in HOSTILE_NAMES))
    await CarriedFiles(outputs, store).fetch(session)
    assert files_below(tmp_path) == {"data/outputs/t1/ok.txt": b"x"}
    assert A not in str(session.messages)


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name != "ok.txt"])
def test_a_name_that_is_not_a_files_is_not_written(tmp_path: Path, name: str) -> None:
    for folder, given in ((tmp_path / "a" / "t1", name), (tmp_path / "a" / ".." / "..", "ok.txt")):
        with pytest.raises(OSError, match="expected the name of a file"):
            write_new(folder, given, b"x")
    assert files_below(tmp_path) == {}


async def test_what_is_there_is_neither_replaced_nor_followed(store: TaskFileStore, tmp_path: Path) -> None:
    outputs, outside = tmp_path / "data" / "outputs", tmp_path / "outside"
    outside.mkdir()
    (outputs / "t1").mkdir(parents=True)
    (outputs / "t1" / "link.txt").symlink_to(outside / "new.txt")
    (outputs / "t1" / "own.txt").write_bytes(b"own")
    (outputs / "t2").symlink_to(outside)
    for task, name in (("t1", "link.txt"), ("t1", "own.txt"), ("t2", "new.txt")):
        await store.keep(task, name, A, b"hostile")
    session = session_with(f"{A}/t1/link.txt {A}/t1/own.txt", media=(Media("image/png", Path(A, "t2", "new.txt")),))
    await CarriedFiles(outputs, store).fetch(session)
    assert list(outside.iterdir()) == []
    assert (outputs / "t1" / "own.txt").read_bytes() == b"own"
    assert {path.name for path in (outputs / "t1").iterdir()} == {"link.txt", "own.txt"}
    write_new(outputs / "t1", "link.txt", b"hostile")
    assert list(outside.iterdir()) == []


def test_a_link_is_not_stored_for_others(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret", "utf-8")
    secret.with_name("link").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("link", "symbolic link"), ("pipe", "expected a regular file"), ("missing", "No such file")):
        with pytest.raises(OSError, match=why):
            content_of(tmp_path / name)


@pytest.mark.slow
async def test_outputs_of_a_task_wait_for_a_database_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carried_files, "PAUSE_SECONDS", 0.05)
    write_new(tmp_path / "t1", "a.txt", b"whole")
    with postgres() as server:
        journal = await PostgresJournal.open(server.database())
        assert journal.files is not None
        files = CarriedFiles(tmp_path, journal.files)
        server.stop("immediate")
        with pytest.raises(JournalUnavailable):
            await files.keep("t1", ["a.txt"])
        waiting = asyncio.ensure_future(files.keep_patiently("t1", ["a.txt"], {}))
        fetching = asyncio.ensure_future(
            CarriedFiles(tmp_path / "b", journal.files).fetch(session_with(f"{A}/t1/a.txt"))
        )
        await asyncio.to_thread(server.start)
        await asyncio.wait_for(asyncio.gather(waiting, fetching), 30)
        assert await journal.files.read("t1", "a.txt") == b"whole"
        monkeypatch.setattr(carried_files, "PATIENCE_SECONDS", 0.1)
        server.stop("immediate")
        await asyncio.wait_for(files.keep_patiently("t1", ["a.txt"], {}), 30)
        await asyncio.wait_for(journal.aclose(), 30)
