"""The requests for pictures of messages and results: their bytes and kind, other users, and what is refused."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.responses import Response

from isthmus.a2a.server.users.auth import LOCAL_USER, Principal, Refusal
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.internal_events import ToolResultRecorded
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.media import JPEG, PNG, Media
from isthmus.web.sessions.pictures import PicturesApi

pytestmark = pytest.mark.anyio
PICTURE = b"\x89PNG\r\n\x1a\n" + b"0" * 20


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    (tmp_path / "one.png").write_bytes(PICTURE)
    (tmp_path / "two.png").write_bytes(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    opened = await SqliteJournal.open(tmp_path / "journal.db")
    media = tuple(Media(PNG, tmp_path / name) for name in ("one.png", "two.png", "gone.png"))
    task = NewTask("task", "context", "/work", "title")
    claimed = await opened.create(task, [Prompt("m", "look", None, media=media)], "here", 60)
    result = ToolResultRecorded("call", "seen", media=(Media(JPEG, tmp_path / "one.png"),))
    await opened.finish(claimed.lease, [result, StateChange(TaskState.COMPLETED)], [])
    yield opened
    await opened.aclose()


async def status(journal: SqliteJournal, name: str, user: Principal = LOCAL_USER) -> int:
    answer = await PicturesApi(journal).respond(f"pictures/{name}", user)
    return answer.status if isinstance(answer, Refusal) else answer.status_code


async def test_a_picture_comes_with_the_kind_of_its_bytes(journal: SqliteJournal) -> None:
    events = {type(item.event): item.seq for item in await journal.events("task", 0, 100)}
    for event in (Prompt, ToolResultRecorded):
        answer = await PicturesApi(journal).respond(f"pictures/task/{events[event]}/0", LOCAL_USER)
        assert isinstance(answer, Response)
        assert (answer.body, answer.headers["content-type"]) == (PICTURE, "image/png")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "private" in answer.headers["cache-control"]


async def test_a_file_that_could_run_something_or_is_gone_is_refused(journal: SqliteJournal) -> None:
    assert await status(journal, "task/1/1") == 415
    assert await status(journal, "task/1/2") == 404
    assert await status(journal, "task/1/3") == 404


async def test_others_and_events_without_pictures_get_nothing(journal: SqliteJournal) -> None:
    assert await status(journal, "task/1/0") == 200
    assert await status(journal, "task/1/0", Principal("other")) == 404
    for name, expected in (
        ("none/1/0", 404), ("task/3/0", 404), ("task/999/0", 404), ("task/0/0", 404), ("task/x/0", 400),
        ("task/1/-1", 400), ("task/1", 400), ("task/1/0/0", 400), (f"task/{'9' * 40}/0", 400),
    ):  # fmt: skip
        assert await status(journal, name) == expected, name
