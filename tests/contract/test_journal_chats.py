"""The saved chats of the journal."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.client import LimitReached
from isthmus.journal.port.base import Journal
from isthmus.journal.port.saved_chats import ChatPlace, SavedChat
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sql import chats as sql_chats
from isthmus.journal.sqlite.journal import SqliteJournal
from support.journals import JournalPlace

pytestmark = pytest.mark.anyio

HERE = ChatPlace("", "/repository")
CHAT = SavedChat("plan", "Make a plan", 2, "t1")
MESSAGES = ({"role": "user", "text": "Grüße \u2028 \U0001f600 \x00"}, {"role": "assistant", "number": 2**53 + 1})


@pytest.fixture
async def journal(journal_place: JournalPlace) -> AsyncIterator[Journal]:
    now = iter(range(1000, 2000))
    opened = await journal_place.open(lambda: float(next(now)))
    yield opened
    await opened.aclose()


async def test_a_chat_is_returned_as_it_was_saved(journal: Journal) -> None:
    assert await journal.chats.save(HERE, CHAT, MESSAGES) is None
    assert await journal.chats.messages(HERE, "plan") == MESSAGES
    assert await journal.chats.messages(HERE, "Plan") is None
    assert await journal.chats.chats(HERE) == [replace(CHAT, saved_at=1000.0)]


async def test_the_chat_that_was_saved_first_under_a_name_stays(journal: Journal) -> None:
    await journal.chats.save(HERE, CHAT, MESSAGES)
    other = replace(CHAT, title="Another", task_id="t2")
    assert await journal.chats.save(HERE, other, ()) == replace(CHAT, saved_at=1000.0)
    assert await journal.chats.save(HERE, replace(CHAT, title="Run again"), ()) is None
    assert await journal.chats.messages(HERE, "plan") == MESSAGES


async def test_chats_of_other_users_and_folders_are_apart(journal: Journal) -> None:
    places = (HERE, ChatPlace("alice", "/repository"), ChatPlace("", "/repository/below"))
    for number, place in enumerate(places):
        await journal.chats.save(place, CHAT, [{"number": number}])
    for number, place in enumerate(places):
        assert await journal.chats.messages(place, "plan") == ({"number": number},)
    assert await journal.chats.delete(places[1], "plan")
    assert not await journal.chats.delete(places[1], "plan")
    assert [len(await journal.chats.chats(place)) for place in places] == [1, 0, 1]


async def test_the_number_and_the_size_of_a_users_chats_are_limited(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_chats, "MAXIMUM_CHATS", 2)
    monkeypatch.setattr(sql_chats, "MAXIMUM_CHARACTERS", 400)
    await journal.chats.save(HERE, CHAT, [{"text": "x" * 300}])
    with pytest.raises(LimitReached, match="the chat has 213 characters"):
        await journal.chats.save(HERE, replace(CHAT, name="large"), [{"text": "x" * 200}])
    await journal.chats.save(ChatPlace("", "/elsewhere"), CHAT, [])
    with pytest.raises(LimitReached, match="2 saved chats"):
        await journal.chats.save(HERE, replace(CHAT, name="third"), [])
    assert await journal.chats.save(ChatPlace("alice", "/repository"), CHAT, [{"text": "x" * 300}]) is None


async def test_a_journal_of_version_6_gets_a_place_for_chats(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = await SqliteJournal.open(path)
    await journal.create(NewTask("t1", "c1", "/repository", "Fix it"), [], "owner", 20.0)
    await journal.aclose()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(
        "DROP TABLE sessions; DROP TABLE queued; DROP TABLE chats; DROP TABLE removed_tokens;"
        " DROP INDEX tasks_in_queue; DROP INDEX tasks_at_work;"
        " DROP INDEX tasks_in_queue_by_user; DROP TABLE queue;"
        " ALTER TABLE tasks DROP COLUMN label; ALTER TABLE tasks DROP COLUMN tag;"
        " ALTER TABLE tasks DROP COLUMN reserved; ALTER TABLE tasks DROP COLUMN running_limit"
    )
    connection.execute("PRAGMA user_version=6")
    connection.close()
    journal = await SqliteJournal.open(path)
    assert await journal.chats.save(HERE, CHAT, MESSAGES) is None
    assert len(await journal.tasks(10)) == 1
    await journal.aclose()


async def test_a_deleted_chat_leaves_no_text_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    journal = await SqliteJournal.open(path)
    await journal.chats.save(HERE, CHAT, [{"text": "a secret " * 2000}])
    await journal.chats.delete(HERE, "plan")
    await journal.removal.erase()
    await journal.aclose()
    assert b"a secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
