"""The requests for sessions: lists, one session, names, the archive, other users and folders, and what is refused."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import LOCAL_USER, Principal, Refusal
from isthmus.events import Prompt, StateChange, TaskState
from isthmus.journal.port.task_rows import NewTask
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.web.sessions.message_queue import MessageQueue
from isthmus.web.sessions.sessions import SessionsApi, excerpt
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    opened = await SqliteJournal.open(tmp_path / "journal.db")
    yield opened
    await opened.aclose()


async def turn(journal: SqliteJournal, context: str, prompt: str, **more: str) -> None:
    """Add a completed task with its prompt as its id."""
    task = NewTask(prompt[:50], context, more.pop("workspace", "/work"), prompt.partition("\n")[0][:100], **more)
    claimed = await journal.create(task, [Prompt(f"m-{prompt[:50]}", prompt, None)], "here", 60)
    await journal.finish(claimed.lease, [StateChange(TaskState.COMPLETED)], [])


async def ask(
    journal: SqliteJournal,
    name: str = "sessions",
    body: object = None,
    user: str = "",
    roots: tuple[str, ...] = (),
    **query: str,
) -> Any:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET" if body is None else "POST",
        "path": "/",
        "headers": [],
        "query_string": urlencode(query).encode(),
    }

    async def receive() -> dict[str, Any]:
        raise NotImplementedError

    async def body_of(request: HttpRequest, limit: int) -> bytes:
        return json.dumps(body).encode()

    principal = Principal(user) if user else LOCAL_USER
    queue = MessageQueue(journal, lambda _: MemoryAgent(lambda _: []))
    api = SessionsApi(journal, "demo", lambda: roots, queue)
    return await api.respond(name, principal, HttpRequest(scope, receive), body_of)


async def titles(journal: SqliteJournal, **query: Any) -> list[str]:
    return [session["title"] for session in (await ask(journal, **query))["sessions"]]


async def test_a_session_has_the_facts_of_all_its_turns(journal: SqliteJournal) -> None:
    await turn(journal, "a/b c", "Tide tables")
    await turn(journal, "a/b c", "Now the quay")
    await journal.create(NewTask("t", "other", "/work", "Other"), [Prompt("m", "Other", None)], "here", 60)
    (other, session) = (await ask(journal))["sessions"]
    assert (other["state"], other["turns"], other["task"]) == ("working", 1, "t")
    one = await ask(journal, "sessions/a/b c")
    tasks = one.pop("tasks")
    assert (one.pop("queued"), one.pop("draft"), one.pop("branch")) == ([], "", "")
    assert {**one, "prompt": ""} == session
    assert {
        name: session[name] for name in ("title", "given", "workspace", "agent", "state", "turns", "questions")
    } == {
        "title": "Tide tables",
        "given": "Tide tables",
        "workspace": "/work",
        "agent": "demo",
        "state": "done",
        "turns": 2,
        "questions": 0,
    }
    assert [(task["id"], task["state"]) for task in tasks] == [
        ("Tide tables", "completed"),
        ("Now the quay", "completed"),
    ]
    assert (session["began"], session["changed"]) == (tasks[0]["began"], tasks[1]["changed"])


async def test_a_cancelled_session_says_so_and_names_the_branch_of_its_folder(
    journal: SqliteJournal, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/tides\n", "utf-8")
    task = NewTask("t", "c", str(tmp_path), "Tide tables")
    claimed = await journal.create(task, [Prompt("m", "Tide tables", None)], "here", 60)
    await journal.finish(claimed.lease, [StateChange(TaskState.CANCELED)], [])
    one = await ask(journal, "sessions/c")
    assert (one["state"], one["turnState"], one["branch"]) == ("failed", "canceled", "tides")


async def test_a_name_and_the_archive_are_the_users_own(journal: SqliteJournal) -> None:
    await turn(journal, "a", "Given")
    await turn(journal, "a", "Hers", user="alice")
    renamed = await ask(journal, "sessions/a", {"do": "rename", "title": " Chosen\x1b[31m\n "})
    assert (renamed["title"], renamed["given"]) == ("Chosen\N{SYMBOL FOR ESCAPE}[31m", "Given")
    assert (await ask(journal, "sessions/a", {"do": "archive"}))["archived"] is True
    assert await titles(journal) == []
    assert await titles(journal, archived="1") == [renamed["title"]]
    assert await titles(journal, user="alice") == ["Hers"]
    assert (await ask(journal, "sessions/a", {"do": "restore"}))["archived"] is False
    assert (await ask(journal, "sessions/a", {"do": "rename", "title": ""}))["title"] == "Given"


async def test_a_draft_and_messages_that_wait_are_kept(journal: SqliteJournal) -> None:
    await journal.create(NewTask("t", "a", "/work", "Works"), [Prompt("m", "Works", None)], "here", 60)
    assert (await ask(journal, "sessions/a", {"do": "draft", "text": "half a "}))["draft"] == "half a "
    image = {"data": "aGk=", "mediaType": "image/png", "name": "a.png"}
    await ask(journal, "sessions/a", {"do": "queue", "id": "1", "text": "one", "mode": "plan", "images": [image]})
    await ask(journal, "sessions/a", {"do": "queue", "id": "2", "text": "two"})
    await ask(journal, "sessions/a", {"do": "edit", "id": "1", "text": "one, edited"})
    queued = (await ask(journal, "sessions/a", {"do": "first", "id": "2"}))["queued"]
    assert [(message["id"], message["text"], message["images"]) for message in queued] == [
        ("2", "two", []),
        ("1", "one, edited", ["a.png"]),
    ]
    refused = await ask(journal, "sessions/a", {"do": "send", "id": "1"})
    assert (refused.status, refused.message[:17]) == (409, "the session works")
    assert (await ask(journal, "sessions/a", {"do": "edit", "id": "x", "text": "y"})).status == 404
    assert (await ask(journal, "sessions/a", {"do": "queue", "id": "3", "text": ""})).status == 400
    await ask(journal, "sessions/a", {"do": "remove", "id": "2"})
    assert [message["id"] for message in (await ask(journal, "sessions/a"))["queued"]] == ["1"]


async def test_the_prompt_is_shown_where_it_was_found(journal: SqliteJournal) -> None:
    await turn(journal, "a", "Tide tables")
    await turn(journal, "a", "Next\n" + "x " * 60 + "quay" + " y" * 200)
    (session,) = (await ask(journal, words="quay tide"))["sessions"]
    assert session["prompt"].startswith("…")
    assert "quay" in session["prompt"]
    assert len(session["prompt"]) <= 161
    assert (await ask(journal, words="tide"))["sessions"][0]["prompt"] == ""


async def test_a_list_goes_on_where_its_step_stopped(journal: SqliteJournal) -> None:
    for number in range(60):
        await turn(journal, f"c{number}", f"session {number}")
    first = await ask(journal, words="session")
    assert (len(first["sessions"]), first["searched"]) == (50, 50)
    assert await titles(journal, after=first["next"]) == [f"session {number}" for number in range(9, -1, -1)]


async def test_other_folders_and_unknown_sessions_are_refused(journal: SqliteJournal) -> None:
    await turn(journal, "far", "Far", workspace="/far")
    assert await titles(journal, roots=("/work",)) == []
    for body in (None, {"do": "archive"}):
        for name, roots in (("sessions/none", ()), ("sessions/far", ("/work",))):
            refused = await ask(journal, name, body, roots=roots)
            assert isinstance(refused, Refusal)
            assert refused.status == 404
    assert await titles(journal) == ["Far"]


@pytest.mark.parametrize(
    "query",
    [{"state": "other"}, {"words": "x" * 201}, {"after": "nan_id"}, {"after": "1"}, {"archived": "yes"}],
)
async def test_bad_queries_are_refused(journal: SqliteJournal, query: dict[str, str]) -> None:
    refused = await ask(journal, "sessions", None, "", (), **query)
    assert isinstance(refused, Refusal)
    assert refused.status == 400


@pytest.mark.parametrize("body", [{}, [], {"do": "rename"}, {"do": "rename", "title": "x" * 201}, {"do": "remove"}])
async def test_bad_changes_are_refused(journal: SqliteJournal, body: object) -> None:
    await turn(journal, "a", "Given")
    refused = await ask(journal, "sessions/a", body)
    assert isinstance(refused, Refusal)
    assert refused.status == 400


def test_an_excerpt_begins_with_the_text_if_the_word_is_near() -> None:
    assert excerpt("one two three", "title", ["three"]) == "one two three"
    assert excerpt("one two three", "three", ["three"]) == ""
