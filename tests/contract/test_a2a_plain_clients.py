"""Clients that speak A2A 0.3 without the extension, over a real socket: text, states and questions in core forms."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)
from support.a2a_serving import TOKEN, RawClient, allow, answer, prompt, serving
from support.memory_agent import Ask, MemoryAgent, write_file_call

pytestmark = pytest.mark.anyio

PLAIN: dict[str, str] = {}


@pytest.fixture
async def agent(workspace: Path) -> MemoryAgent:
    return MemoryAgent(default_workspace=str(workspace))


@pytest.fixture
async def server(agent: MemoryAgent) -> AsyncIterator[RawClient]:
    async with serving(agent) as client:
        yield client


async def test_a_prompt_works_in_the_workspace_of_the_server(
    server: RawClient, agent: MemoryAgent, workspace: Path
) -> None:
    await server.result("message/send", prompt("one"), PLAIN)
    await server.result("message/send", prompt("two", contextId="mine"), PLAIN)
    await server.result("message/send", prompt("three", contextId="mine"), PLAIN)
    assert [item.settings for item in agent.prompts] == [None] * 3
    assert {task.workspace for task in await agent.tasks()} == {str(workspace)}


async def test_without_a_default_workspace_the_key_to_send_is_named() -> None:
    async with serving(MemoryAgent()) as server:
        error = await server.error("message/send", prompt("one"), PLAIN)
    assert error["code"] == -32602
    assert "workspace_path" in error["message"]


async def test_the_stream_has_states_and_the_answer_and_nothing_of_the_extension(server: RawClient) -> None:
    task, working, answer, completed = await server.stream("message/stream", prompt("hello"), PLAIN)
    assert [event.state for event in (task, working, completed)] == ["submitted", "working", "completed"]
    assert (answer.result["kind"], answer.result["append"], answer.result["lastChunk"]) == (
        "artifact-update",
        False,
        True,
    )
    assert answer.result["artifact"]["parts"] == [{"kind": "text", "text": "You said: hello"}]
    assert not any("message" in event.result["status"] for event in (working, completed))
    assert not any("metadata" in event.result for event in (task, working, answer, completed))
    assert [event.result["final"] for event in (working, completed)] == [False, True]
    assert [event.id is not None for event in (working, answer, completed)] == [True, False, True]


async def test_a_completed_task_holds_its_answer_once_and_in_its_history(server: RawClient) -> None:
    task = await server.result("message/send", prompt("hello"), PLAIN)
    assert [artifact["parts"] for artifact in task["artifacts"]] == [[{"kind": "text", "text": "You said: hello"}]]
    assert "message" not in task["status"]
    assert [message["parts"][0]["text"] for message in task["history"]] == ["hello", "You said: hello"]


@pytest.mark.parametrize("history_length", [None, 0, 1])
async def test_the_stream_and_the_task_have_the_same_artifact(server: RawClient, history_length: int | None) -> None:
    task, *_, update, _ = await server.stream("message/stream", prompt("hello"), PLAIN)
    asked = {"id": task.result["id"]} | ({} if history_length is None else {"historyLength": history_length})
    found = await server.result("tasks/get", asked, PLAIN)
    assert found["artifacts"] == [update.result["artifact"]]
    assert len(found.get("history", [])) == (2 if history_length is None else history_length)


async def test_a_client_that_comes_later_gets_the_same_answer_again(server: RawClient) -> None:
    task, working, update, _ = await server.stream("message/stream", prompt("hello"), PLAIN)
    about = {"id": task.result["id"]}
    (now,) = await server.stream("tasks/resubscribe", about, PLAIN)
    assert now.result["artifacts"] == [update.result["artifact"]]
    resumed = await server.stream("tasks/resubscribe", about, {"Last-Event-ID": working.id or ""})
    assert [item.result["kind"] for item in resumed] == ["artifact-update", "status-update"]
    assert resumed[0].result["artifact"] == update.result["artifact"]


async def test_texts_while_the_agent_works_are_sent_where_the_server_is_asked_to(agent: MemoryAgent) -> None:
    async with serving(agent, ServerOptions(TOKEN, progress_text=True)) as server:
        _, *events, update, completed = await server.stream("message/stream", prompt("hello"), PLAIN)
    assert [event.text for event in events if "message" in event.result["status"]] == ["You said: ", "hello"]
    assert update.result["artifact"]["parts"] == [{"kind": "text", "text": "You said: hello"}]
    assert "message" not in completed.result["status"]


async def test_a_question_is_described_in_text_and_whole_as_data(server: RawClient) -> None:
    *_, last = await server.stream("message/stream", prompt("edit"), PLAIN)
    assert (last.state, last.result["final"]) == ("input-required", True)
    text, data = last.result["status"]["message"]["parts"]
    assert "May write_file change /workspace/a.txt?\n-old\n+new" in text["text"]
    assert "proceed_once (Allow once), cancel (Reject)" in text["text"]
    assert data["data"]["tool_call_id"] == "call-1"
    *_, update, completed = await server.stream("message/stream", answer(last.result["taskId"], allow()), PLAIN)
    assert (update.result["kind"], completed.state) == ("artifact-update", "completed")
    assert update.result["artifact"]["parts"][0]["text"] == "I changed the file."


@pytest.mark.parametrize("said", ["proceed_once", " Allow once\n", "ALLOW ONCE"])
async def test_a_question_may_be_answered_in_words(server: RawClient, said: str) -> None:
    task = await server.result("message/send", prompt("edit"), PLAIN)
    done = await server.result("message/send", prompt(said, taskId=task["id"]), PLAIN)
    assert [artifact["parts"][0]["text"] for artifact in done["artifacts"]] == ["I changed the file."]


async def test_other_words_leave_the_question_open_and_it_is_asked_again(server: RawClient, agent: MemoryAgent) -> None:
    task = await server.result("message/send", prompt("edit"), PLAIN)
    again = await server.result("message/send", prompt("what would it do?", taskId=task["id"]), PLAIN)
    assert (again["id"], again["status"]["state"]) == (task["id"], "input-required")
    assert again["status"]["message"]["parts"] == task["status"]["message"]["parts"]
    assert [item.text for item in agent.prompts] == ["edit"]


async def test_a_reason_after_a_no_is_a_message(server: RawClient, agent: MemoryAgent) -> None:
    task = await server.result("message/send", prompt("edit"), PLAIN)
    await server.result("message/send", prompt("no, use another file", taskId=task["id"]), PLAIN)
    assert [item.text for item in agent.prompts] == ["edit", "no, use another file"]


async def test_words_are_no_answer_where_the_extension_is_active(
    server: RawClient, agent: MemoryAgent, workspace: Path
) -> None:
    task = await server.result("message/send", prompt("edit", workspace))
    await server.result("message/send", prompt("proceed_once", taskId=task["id"]))
    assert [item.text for item in agent.prompts] == ["edit", "proceed_once"]


@pytest.mark.parametrize(
    ("request_details", "text"),
    [
        (ConfirmationRequest((), execute_details=ExecuteDetails("ls", "/w")), "May tool run this command in /w?\nls"),
        (ConfirmationRequest((), mcp_details=McpDetails("git", "log")), "May the tool log of the MCP server git run?"),
        (ConfirmationRequest((), generic_details=GenericDetails("Fetch.")), "May tool go on? Fetch."),
        (ConfirmationRequest((ConfirmationOption("ok", "OK"),)), "May tool run?\nAnswer with one of: ok (OK)"),
    ],
)
async def test_every_kind_of_question_is_described(
    workspace: Path, request_details: ConfirmationRequest, text: str
) -> None:
    call = ToolCall("c", ToolCallStatus.PENDING, "tool", {}, confirmation_request=request_details)
    agent = MemoryAgent(lambda _: (Ask((call,)),), default_workspace=str(workspace))
    async with serving(agent) as server:
        *_, last = await server.stream("message/stream", prompt("ask"), PLAIN)
    assert last.text.startswith(text)


async def test_a_question_about_an_mcp_tool_has_its_arguments_and_the_servers_hints(workspace: Path) -> None:
    described = "wipe of the MCP server files\nIts server says that it can destroy things."
    request = ConfirmationRequest((), mcp_details=McpDetails("files", "wipe"))
    call = ToolCall("c", ToolCallStatus.PENDING, "wipe", {"path": "/é"}, described, confirmation_request=request)
    agent = MemoryAgent(lambda _: (Ask((call,)),), default_workspace=str(workspace))
    async with serving(agent) as server:
        *_, last = await server.stream("message/stream", prompt("ask"), PLAIN)
    assert last.text.splitlines()[:3] == [
        "May the tool wipe of the MCP server files run?",
        "Its server says that it can destroy things.",
        '{"path": "/é"}',
    ]


async def test_two_questions_are_not_answered_by_one_word(workspace: Path) -> None:
    calls = (write_file_call("one"), write_file_call("two"))
    agent = MemoryAgent(lambda _: (Ask(calls),), default_workspace=str(workspace))
    async with serving(agent) as server:
        task = await server.result("message/send", prompt("edit"), PLAIN)
        again = await server.result("message/send", prompt("proceed_once", taskId=task["id"]), PLAIN)
    assert again["status"]["state"] == "input-required"
    assert len(agent.prompts) == 1


async def test_data_and_files_become_part_of_the_prompt(server: RawClient, agent: MemoryAgent) -> None:
    parts = [
        {"kind": "text", "text": "look"},
        {"kind": "data", "data": {"line": 12}},
        {"kind": "file", "file": {"name": "a.txt", "bytes": "aGFsbG8="}},
        {"kind": "file", "file": {"name": "b.png", "mimeType": "image/png", "uri": "file:///b.png"}},
    ]
    await server.result("message/send", prompt("", parts=parts), PLAIN)
    assert agent.prompts[0].text == (
        'look\n\n```json\n{"line":12}\n```\n\nAttached: a.txt\n```\nhallo\n```\n\n'
        "Attached: b.png (image/png) at file:///b.png"
    )
