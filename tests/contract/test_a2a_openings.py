"""Clients that state the extension in their first message alone, as its document has it, which names no header."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.openings import Openings
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.wire import Opening
from support.a2a_serving import EXTENSION, TOKEN, RawClient, StreamItem, allow, answer, prompt, rpc, serving
from support.memory_agent import MemoryAgent
from support.script_agent import Serve, serve_with

pytestmark = pytest.mark.anyio

PLAIN: dict[str, str] = {}
NO_STATEMENTS: Sequence[Mapping[str, str]] = ({}, {"A2A-Extensions": ""}, {"X-A2A-Extensions": ","})
"""Headers of requests that name no extension."""
OTHER = {"A2A-Extensions": "https://example.org/extensions/other/v1"}
KINDS = ["TOOL_CALL_UPDATE", "TOOL_CALL_UPDATE", "TEXT_CONTENT", "STATE_CHANGE"]


@pytest.fixture(params=["memory", "engine"])
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    return serve_with(request.param, tmp_path)


@pytest.fixture
async def server(serve: Serve) -> AsyncIterator[RawClient]:
    async with serve() as client:
        yield client


async def asked(server: RawClient, workspace: Path, **more: Any) -> StreamItem:
    """Return the question to which a first message leads that has the extension in its metadata alone."""
    return (await server.stream("message/stream", prompt("edit", workspace, **more), PLAIN))[-1]


def kinds(events: Iterable[StreamItem]) -> list[str | None]:
    """Return the kind of each status update; a text has one, in however many pieces it comes."""
    found = [event.kind for event in events if event.result["kind"] == "status-update"]
    return [kind for at, kind in enumerate(found) if kind != "TEXT_CONTENT" or found[at - 1] != kind]


@pytest.mark.parametrize("headers", NO_STATEMENTS)
async def test_an_answer_continues_in_the_extension(
    server: RawClient, workspace: Path, headers: Mapping[str, str]
) -> None:
    question = await asked(server, workspace)
    events = await server.stream("message/stream", answer(question.result["taskId"], allow()), headers)
    assert kinds(events) == KINDS
    assert [event.data["status"] for event in events[:2]] == ["EXECUTING", "SUCCEEDED"]
    assert (events[-1].state, events[-1].result["final"]) == ("completed", True)


async def test_every_later_request_about_the_task_is_in_the_extension(server: RawClient, workspace: Path) -> None:
    question = await asked(server, workspace)
    about = {"id": question.result["taskId"]}
    waiting = await server.result("tasks/get", about, PLAIN)
    assert waiting["metadata"][URI]["workspace_path"] == str(workspace)
    assert [part["kind"] for part in waiting["status"]["message"]["parts"]] == ["data"]
    first, *_ = await server.stream("tasks/resubscribe", about, PLAIN)
    assert URI in first.result["metadata"]
    replayed = await server.stream("tasks/resubscribe", about, {"Last-Event-ID": "1"})
    assert kinds(replayed)[-2:] == ["TOOL_CALL_UPDATE", "STATE_CHANGE"]
    assert URI in (await server.result("tasks/cancel", about, PLAIN))["metadata"]


async def test_a_completed_task_is_continued_and_its_session_too(server: RawClient, workspace: Path) -> None:
    question = await asked(server, workspace)
    task_id, context_id = question.result["taskId"], question.result["contextId"]
    await server.stream("message/stream", answer(task_id, allow()), PLAIN)
    more = await server.stream("message/stream", prompt("hello", taskId=task_id, contextId=context_id), PLAIN)
    assert (kinds(more)[-1], more[-1].state) == ("STATE_CHANGE", "completed")
    assert "TEXT_CONTENT" in kinds(more)
    task, *events = await server.stream("message/stream", prompt("hello", contextId=context_id), PLAIN)
    assert task.result["id"] != task_id
    assert URI in task.result["metadata"]
    assert kinds(events)[-1] == "STATE_CHANGE"


async def test_the_form_outlives_the_process_and_holds_at_another_one(tmp_path: Path, workspace: Path) -> None:
    async with serve_with("engine", tmp_path)() as first:
        question = (await asked(first, workspace)).result
    async with serve_with("engine", tmp_path)() as other:
        assert URI in (await other.result("tasks/get", {"id": question["taskId"]}, PLAIN))["metadata"]
    async with serve_with("engine", tmp_path)() as third:
        task, *events = await third.stream("message/stream", prompt("hello", contextId=question["contextId"]), PLAIN)
    assert URI in task.result["metadata"]
    assert kinds(events) == ["STATE_CHANGE", "TEXT_CONTENT", "STATE_CHANGE"]


async def test_a_session_whose_first_message_has_a_header_alone_stays_in_the_extension(workspace: Path) -> None:
    async with serving(MemoryAgent(default_workspace=str(workspace)), ServerOptions(TOKEN)) as server:
        first = await server.result("message/send", prompt("edit", workspace), EXTENSION)
        events = await server.stream("message/stream", answer(first["id"], allow()), PLAIN)
    assert kinds(events) == KINDS


async def test_another_extension_in_a_header_ends_it_for_the_request(server: RawClient, workspace: Path) -> None:
    about = {"id": (await asked(server, workspace)).result["taskId"]}
    assert "metadata" not in await server.result("tasks/get", about, OTHER)
    assert "metadata" in await server.result("tasks/get", about, PLAIN)


async def test_a_task_of_a_plain_client_stays_plain_whatever_form_its_answer_has(workspace: Path) -> None:
    async with serving(MemoryAgent(default_workspace=str(workspace))) as server:
        task = await server.result("message/send", prompt("edit"), PLAIN)
        *_, update, completed = await server.stream("message/stream", answer(task["id"], allow()), PLAIN)
    assert update.result["artifact"]["parts"] == [{"kind": "text", "text": "I changed the file."}]
    assert "metadata" not in completed.result


async def test_words_answer_a_question_where_the_request_names_no_extension(server: RawClient, workspace: Path) -> None:
    question = await asked(server, workspace)
    events = await server.stream("message/stream", prompt("Allow once", taskId=question.result["taskId"]), PLAIN)
    assert kinds(events) == KINDS


async def test_a_server_that_requires_the_extension_takes_the_answer(tmp_path: Path, workspace: Path) -> None:
    async with serve_with("engine", tmp_path)(options=ServerOptions(TOKEN, strict_extension=True)) as server:
        question = await asked(server, workspace)
        task_id, context_id = question.result["taskId"], question.result["contextId"]
        assert kinds(await server.stream("message/stream", answer(task_id, allow()), PLAIN)) == KINDS
        more = await server.stream("message/stream", prompt("hello", taskId=task_id), PLAIN)
        assert more[-1].state == "completed"
        again = await server.result("message/send", prompt("hello", contextId=context_id), PLAIN)
        assert URI in again["metadata"]
        refused = await server.error("message/send", prompt("hello"), PLAIN)
    assert refused["code"] == -32600
    assert URI in refused["message"]


def in_message_metadata(task_id: str, confirmation: Mapping[str, Any]) -> dict[str, Any]:
    params = prompt("proceed", taskId=task_id)
    return {"message": {**params["message"], "metadata": {URI: dict(confirmation)}}}


def in_request_metadata(task_id: str, confirmation: Mapping[str, Any]) -> dict[str, Any]:
    return {**prompt("proceed", taskId=task_id), "metadata": {URI: dict(confirmation)}}


def in_data_under_the_uri(task_id: str, confirmation: Mapping[str, Any]) -> dict[str, Any]:
    return answer(task_id, {URI: dict(confirmation)})


def in_data_and_metadata(task_id: str, confirmation: Mapping[str, Any]) -> dict[str, Any]:
    params = answer(task_id, confirmation)
    return {"message": {**params["message"], "metadata": {URI: dict(confirmation)}}}


PLACES = [in_message_metadata, in_request_metadata, in_data_under_the_uri, in_data_and_metadata]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("headers", [PLAIN, EXTENSION])
async def test_an_answer_is_read_wherever_the_document_lets_it_stand(
    server: RawClient, workspace: Path, place: Any, headers: Mapping[str, str]
) -> None:
    question = await asked(server, workspace)
    params = place(question.result["taskId"], allow())
    events = await server.stream("message/stream", params, headers)
    assert kinds(events) == KINDS
    assert [event.data["status"] for event in events[:2]] == ["EXECUTING", "SUCCEEDED"]


async def test_an_unfinished_answer_in_metadata_leaves_the_question_open(server: RawClient, workspace: Path) -> None:
    question = await asked(server, workspace)
    error = await server.error(
        "message/send", in_message_metadata(question.result["taskId"], {"tool_call_id": "call-1"}), PLAIN
    )
    assert error["code"] == -32602
    assert "selected_option_id" in error["message"]
    now = await server.result("tasks/get", {"id": question.result["taskId"]}, PLAIN)
    assert now["status"]["state"] == "input-required"


async def test_version_1_and_rest_keep_the_form_as_well(server: RawClient, workspace: Path) -> None:
    message = {
        "role": "ROLE_USER",
        "message_id": "first",
        "parts": [{"text": "edit"}],
        "metadata": {URI: {"workspace_path": str(workspace)}},
    }
    task = (await posted(server, "SendMessage", {"message": message}))["task"]
    chosen = {"role": "ROLE_USER", "messageId": "second", "task_id": task["id"], "parts": [{"data": allow()}]}
    answered = (await posted(server, "SendMessage", {"message": chosen}))["task"]
    assert (answered["status"]["state"], URI in answered["metadata"]) == ("TASK_STATE_COMPLETED", True)
    found = await server.http.get(f"{server.url}tasks/{task['id']}", headers={"A2A-Version": "1.0"})
    assert URI in found.json()["metadata"]
    assert URI in (await posted(server, "GetTask", {"id": task["id"]}))["metadata"]


async def posted(server: RawClient, method: str, params: object) -> Any:
    """Return the result of a request of A2A 1.0 without a header of the extension."""
    response = await server.http.post(server.url, json=rpc(method, params), headers={"A2A-Version": "1.0"})
    return response.json()["result"]


async def test_the_least_recently_used_opening_is_forgotten_first(workspace: Path) -> None:
    agent = MemoryAgent(default_workspace=str(workspace))
    memory = Openings(limit=4)
    for name in ("a", "b"):
        memory.note(f"task-{name}", f"session-{name}", "ada", Opening(URI))
    assert await memory.of({"id": "task-a"}, agent, "ada") == Opening(URI)
    assert await memory.of({"message": {"contextId": "session-a"}}, agent, "ada") == Opening(URI)
    memory.note("task-c", "session-c", "ada", Opening(""))
    assert await memory.of({"id": "task-b"}, agent, "ada") is None
    assert await memory.of({"id": "task-a"}, agent, "ada") == Opening(URI)


async def test_what_is_remembered_of_a_users_tasks_says_nothing_to_others(workspace: Path) -> None:
    agent = MemoryAgent(default_workspace=str(workspace))
    memory = Openings()
    memory.note("task", "session", "ada", Opening(URI))
    for params in ({"id": "task"}, {"message": {"taskId": "task"}}, {"message": {"contextId": "session"}}):
        assert await memory.of(params, agent, "ada") == Opening(URI)
        assert await memory.of(params, agent, "bob") is None


@pytest.mark.parametrize("name", ["taskId", "contextId"])
async def test_an_id_that_is_too_long_is_refused_before_it_is_looked_up(
    server: RawClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    looked: list[str] = []

    async def look(self: Openings, key: str, *_: object) -> None:
        looked.append(key)

    monkeypatch.setattr(Openings, "_of_task", look)
    monkeypatch.setattr(Openings, "_of_session", look)
    error = await server.error("message/send", prompt("hello", **{name: "x" * 100_000}), PLAIN)
    assert (error["code"], looked) == (-32602, [])
