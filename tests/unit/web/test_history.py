"""The search over all tasks of a user: words, states, steps, other users, folders, and what is refused."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import LOCAL_USER, Principal, Refusal
from isthmus.events import Command, Prompt, StateChange, TaskState
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sql import reads as sql_reads
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.web.history import HistorySearch, excerpt

pytestmark = pytest.mark.anyio


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    opened = await SqliteJournal.open(tmp_path / "journal.db")
    yield opened
    await opened.aclose()


async def begin(journal: SqliteJournal, title: str, prompt: str = "", **more: str) -> None:
    """Add a task with its title as its id."""
    task = NewTask(title, f"of-{title}", more.pop("workspace", "/work"), title, **more)
    claimed = await journal.create(task, [Prompt("m", prompt or title, None)], "here", 60)
    await journal.finish(claimed.lease, [StateChange(TaskState.COMPLETED)], [])


async def _no_body(request: HttpRequest, limit: int) -> bytes:
    return b""


async def ask(journal: SqliteJournal, user: str = "", roots: tuple[str, ...] = (), **query: str) -> Any:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "headers": [],
        "query_string": urlencode(query).encode(),
    }

    async def receive() -> dict[str, Any]:
        raise NotImplementedError

    principal = Principal(user) if user else LOCAL_USER
    return await HistorySearch(journal, lambda: roots).respond(principal, HttpRequest(scope, receive), _no_body)


async def found(journal: SqliteJournal, user: str = "", roots: tuple[str, ...] = (), **query: str) -> list[str]:
    return [task["id"] for task in (await ask(journal, user, roots, **query))["tasks"]]


async def test_all_words_are_sought_in_title_prompt_and_workspace(journal: SqliteJournal) -> None:
    await begin(journal, "Tide tables", 'Tide tables\nfor the "Émile" harbour \\ quay')
    await begin(journal, "Other", workspace="/home/harbour")
    await begin(journal, "Third")
    assert await found(journal, words="HARBOUR") == ["Other", "Tide tables"]
    assert await found(journal, words="harbour tide") == ["Tide tables"]
    assert await found(journal, words='"émile" \\') == ["Tide tables"]
    for unknown in ("message_id", "Prompt", "nquay", "%", "_"):
        assert await found(journal, words=unknown) == []
    assert await found(journal) == ["Third", "Other", "Tide tables"]


async def test_the_prompt_is_shown_where_it_was_found(journal: SqliteJournal) -> None:
    await begin(journal, "Tide tables", "Tide tables\n" + "x " * 60 + "quay" + " y" * 200)
    (task,) = (await ask(journal, words="quay tide"))["tasks"]
    assert task["prompt"].startswith("…")
    assert "quay" in task["prompt"]
    assert len(task["prompt"]) <= 161
    assert (task["title"], task["workspace"], task["state"]) == ("Tide tables", "/work", "completed")
    assert (await ask(journal, words="tide"))["tasks"][0]["prompt"] == ""


async def test_states_are_chosen_by_name(journal: SqliteJournal) -> None:
    await begin(journal, "ended")
    await journal.create(NewTask("new", "c", "/work", "new"), [Prompt("m", "new", None)], "here", 60)
    assert await found(journal, state="done") == ["ended"]
    assert await found(journal, state="working") == ["new"]
    assert await found(journal, state="waiting") == []
    assert await found(journal, state="failed", words="ended") == []


async def test_a_search_goes_on_where_its_step_stopped(journal: SqliteJournal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_reads, "SEARCHED_TASKS", 4)
    for number in range(10):
        await begin(journal, f"task {number} {'odd' if number % 2 else 'even'}")
    names: list[str] = []
    searched: list[int] = []
    after = ""
    for _ in range(3):
        step = await ask(journal, words="odd", after=after)
        names += [task["id"] for task in step["tasks"]]
        searched.append(step["searched"])
        assert step["total"] == 10
        after = step["next"]
    assert names == [f"task {number} odd" for number in (9, 7, 5, 3, 1)]
    assert (searched, after) == ([4, 4, 2], "")


async def test_a_step_stops_at_its_limit_and_misses_nothing(journal: SqliteJournal) -> None:
    for number in range(60):
        await begin(journal, f"task {number}")
    first = await ask(journal, words="task")
    assert (len(first["tasks"]), first["searched"]) == (50, 50)
    rest = await ask(journal, words="task", after=first["next"])
    assert [task["id"] for task in rest["tasks"]] == [f"task {number}" for number in range(9, -1, -1)]
    assert rest["next"] == ""


async def test_only_own_tasks_below_the_folders_are_found(journal: SqliteJournal) -> None:
    await begin(journal, "own")
    await begin(journal, "of alice", user="alice")
    await begin(journal, "part", parent="own")
    await begin(journal, "far", workspace="/far")
    assert await found(journal) == ["far", "own"]
    assert await found(journal, "alice") == ["of alice"]
    assert await found(journal, roots=("/work",)) == ["own"]


async def test_commands_and_broken_prompts_are_found_by_their_titles(journal: SqliteJournal) -> None:
    task = NewTask("command", "c", "/work", "/compress now")
    await journal.create(task, [Command("m", ("compress",), "now")], "here", 60)
    await begin(journal, "long", "word " * 30_000 + "end")
    assert await found(journal, words="compress") == ["command"]
    assert await found(journal, words="WORD") == ["long"]
    assert await found(journal, words="end") == []


@pytest.mark.parametrize(
    "query",
    [
        {"state": "other"},
        {"words": "x" * 201},
        {"after": "x"},
        {"after": "nan_id"},
        {"after": "1_" + "x" * 201},
        {"after": "1"},
    ],
)
async def test_bad_queries_are_refused(journal: SqliteJournal, query: dict[str, str]) -> None:
    refused = await ask(journal, "", (), **query)
    assert isinstance(refused, Refusal)
    assert refused.status == 400


def test_an_excerpt_begins_with_the_text_if_the_word_is_near() -> None:
    assert excerpt("one two three", "title", ["three"]) == "one two three"
    assert excerpt("one two three", "three", ["three"]) == ""
