"""The example flow of the development-tool extension, Appendix A, event by event, over a real socket."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.protocol.extension import URI
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.encoding.codec import from_json
from isthmus.events import RetryNotice, TextContent, Thought, ToolCallUpdate
from support.a2a_serving import RawClient, StreamItem, allow, answer, prompt, serving
from support.memory_agent import Ask, MemoryAgent, Progress, Wait, write_file_call
from support.script_agent import Serve, serve_with

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "engine"])
def serve(request: pytest.FixtureRequest, tmp_path: Path) -> Serve:
    return serve_with(request.param, tmp_path)


@pytest.fixture
async def server(serve: Serve) -> AsyncIterator[RawClient]:
    async with serve() as client:
        yield client


async def asked(server: RawClient, workspace: Path) -> Sequence[StreamItem]:
    """Return the stream of a prompt that leads to a question."""
    return await server.stream("message/stream", prompt("edit", workspace))


async def allowed(server: RawClient, workspace: Path, **more: Any) -> Sequence[StreamItem]:
    """Return the stream of the answer that allows it."""
    task, *_ = await asked(server, workspace)
    return await server.stream("message/stream", answer(task.result["id"], allow(**more)))


@pytest.mark.requirement("A2A-001", "A2A-136", "A2A-137", "A2A-138")
async def test_a_stream_begins_with_the_submitted_task_and_then_works(server: RawClient, workspace: Path) -> None:
    first, second, *_ = await asked(server, workspace)
    assert first.result["kind"] == "task"
    assert first.state == "submitted"
    assert first.result["id"]
    assert second.result["kind"] == "status-update"
    assert (second.kind, second.state, second.result["final"]) == ("STATE_CHANGE", "working", False)


@pytest.mark.requirement("A2A-002", "A2A-003", "A2A-024", "A2A-025")
async def test_every_event_is_a_status_update_of_the_task_with_a_message(server: RawClient, workspace: Path) -> None:
    task, *events = await asked(server, workspace)
    ids = (task.result["id"], task.result["contextId"])
    assert len(events) == 4
    for event in events:
        message = event.result["status"]["message"]
        assert event.result["kind"] == "status-update"
        assert (event.result["taskId"], event.result["contextId"]) == ids
        assert (message["taskId"], message["contextId"], message["role"]) == (*ids, "agent")
        assert message["messageId"]
        assert event.result["status"]["timestamp"].endswith("Z")


@pytest.mark.requirement("A2A-008", "A2A-019", "A2A-085", "A2A-092")
async def test_the_metadata_of_every_event_has_its_kind_under_the_uri_alone(server: RawClient, workspace: Path) -> None:
    _, *events = await asked(server, workspace)
    metadata = [event.result["metadata"] for event in events]
    assert [list(item) for item in metadata] == [[URI]] * 4
    assert metadata[0] == {URI: {"kind": "STATE_CHANGE", "model": "scripted"}}
    assert [list(item[URI]) for item in metadata] == [["kind", "model"]] * 4
    assert [event.kind for event in events] == ["STATE_CHANGE", "THOUGHT", "TOOL_CALL_UPDATE", "STATE_CHANGE"]


@pytest.mark.requirement("A2A-009", "A2A-027", "A2A-083", "A2A-084")
async def test_a_thought_is_a_data_part_with_subject_and_description(server: RawClient, workspace: Path) -> None:
    events = await asked(server, workspace)
    (thought,) = [event for event in events if event.kind == "THOUGHT"]
    assert thought.result["status"]["message"]["parts"] == [
        {"kind": "data", "data": {"subject": "Plan", "description": "Change the file."}}
    ]


@pytest.mark.requirement("A2A-140", "A2A-030", "A2A-031", "A2A-143")
async def test_the_third_event_is_the_pending_call_with_its_question(server: RawClient, workspace: Path) -> None:
    pending = (await asked(server, workspace))[3]
    assert (pending.kind, pending.state, pending.result["final"]) == ("TOOL_CALL_UPDATE", "working", False)
    assert pending.data["status"] == "PENDING"
    request = pending.data["confirmation_request"]
    assert [option["id"] for option in request["options"]] == ["proceed_once", "cancel"]
    assert request["file_edit_details"]["new_content"] == "new\n"


@pytest.mark.requirement("A2A-072")
async def test_a_user_may_allow_once_and_reject(server: RawClient, workspace: Path) -> None:
    options = (await asked(server, workspace))[3].data["confirmation_request"]["options"]
    named = {option["id"]: option["name"].casefold() for option in options}
    assert named == {"proceed_once": "allow once", "cancel": "reject"}


@pytest.mark.requirement("A2A-141", "A2A-142", "A2A-010", "A2A-097")
async def test_the_stream_ends_finally_where_the_user_is_asked(server: RawClient, workspace: Path) -> None:
    events = await asked(server, workspace)
    assert (events[-1].kind, events[-1].state, events[-1].result["final"]) == ("STATE_CHANGE", "input-required", True)
    assert [event.result.get("final") for event in events[1:-1]] == [False, False, False]
    assert events[-1].data == events[3].data


@pytest.mark.requirement("A2A-144", "A2A-032", "A2A-145", "A2A-034")
async def test_an_answer_needs_only_the_task_and_its_stream_begins_with_executing(
    server: RawClient, workspace: Path
) -> None:
    executing, *_ = await allowed(server, workspace)
    assert (executing.kind, executing.state) == ("TOOL_CALL_UPDATE", "working")
    assert executing.data["status"] == "EXECUTING"
    assert "confirmation_request" not in executing.data


@pytest.mark.requirement("A2A-146", "A2A-028", "A2A-036", "A2A-037")
async def test_the_second_event_of_the_answer_is_the_whole_call_that_succeeded(
    server: RawClient, workspace: Path
) -> None:
    executing, succeeded, *_ = await allowed(server, workspace)
    assert succeeded.kind == "TOOL_CALL_UPDATE"
    assert succeeded.data["status"] == "SUCCEEDED"
    assert succeeded.data["output"]["diff"]["new_content"] == "new\n"
    assert {key: succeeded.data[key] for key in executing.data if key != "status"} == {
        key: executing.data[key] for key in executing.data if key != "status"
    }


@pytest.mark.requirement("A2A-148", "A2A-026", "A2A-089")
async def test_text_comes_as_increments_of_one_message(server: RawClient, workspace: Path) -> None:
    events = await allowed(server, workspace)
    texts = [event for event in events if event.kind == "TEXT_CONTENT"]
    assert "".join(event.text for event in texts) == "I changed the file."
    assert {event.result["status"]["message"]["messageId"] for event in texts} == {"text-1"}
    for event in texts:
        assert event.result["status"]["message"]["parts"] == [{"kind": "text", "text": event.text}]


@pytest.mark.requirement("A2A-149", "A2A-004", "A2A-090")
async def test_the_stream_ends_finally_where_the_task_is_completed(server: RawClient, workspace: Path) -> None:
    events = await allowed(server, workspace)
    assert (events[-1].kind, events[-1].state, events[-1].result["final"]) == ("STATE_CHANGE", "completed", True)
    assert not any(event.result["final"] for event in events[:-1])


@pytest.mark.requirement("A2A-150")
async def test_the_task_holds_the_final_answer_afterwards(server: RawClient, workspace: Path) -> None:
    events = await allowed(server, workspace)
    task = await server.result("tasks/get", {"id": events[0].result["taskId"]})
    assert task["status"]["message"]["parts"] == [{"kind": "text", "text": "I changed the file."}]
    assert [(message["role"], message["parts"][0]["text"]) for message in task["history"]] == [
        ("user", "edit"),
        ("agent", "I changed the file."),
    ]


@pytest.mark.requirement("A2A-103", "A2A-105", "A2A-106")
async def test_what_the_user_changed_is_what_is_written(server: RawClient, workspace: Path) -> None:
    _, succeeded, *_ = await allowed(server, workspace, file_details={"new_content": "mine\n"})
    assert succeeded.data["output"]["diff"]["new_content"] == "mine\n"


@pytest.mark.requirement("A2A-100", "A2A-101", "A2A-102")
async def test_an_answer_is_known_by_its_keys_in_either_spelling(server: RawClient, workspace: Path) -> None:
    for confirmation in (
        {"toolCallId": "call-1", "selectedOptionId": "proceed_once", "fileDetails": {"newContent": "mine\n"}},
        {**allow(), "file_details": {"new_content": "mine\n"}, "something": "newer"},
        {**allow(), "modified_details": {"file_details": {"new_content": "mine\n"}}},
        {**allow(), "modifiedDetails": {"fileDetails": {"newContent": "mine\n"}}},
    ):
        task, *_ = await asked(server, workspace)
        metadata = {URI: {"kind": "THOUGHT"}, "https://example.org/other": 1}
        events = await server.stream("message/stream", answer(task.result["id"], confirmation, metadata=metadata))
        assert events[1].data["output"]["diff"]["new_content"] == "mine\n"
        assert events[-1].state == "completed"


@pytest.mark.requirement("A2A-033", "A2A-055")
async def test_a_cancelled_call_is_never_executed(server: RawClient, workspace: Path) -> None:
    task, *_ = await asked(server, workspace)
    events = await server.stream(
        "message/stream", answer(task.result["id"], {"tool_call_id": "call-1", "selected_option_id": "cancel"})
    )
    assert [event.data["status"] for event in events if event.kind == "TOOL_CALL_UPDATE"] == ["CANCELLED"]


@pytest.mark.requirement("A2A-020", "A2A-135", "A2A-022", "A2A-021")
async def test_the_first_message_carries_the_workspace_to_the_agent(workspace: Path) -> None:
    agent = MemoryAgent()
    async with serving(agent) as server:
        params = prompt("hello", workspace)
        params["message"]["metadata"][URI]["model"] = "x"
        await server.stream("message/stream", params)
    assert [(item.text, item.settings) for item in agent.prompts] == [
        ("hello", {"workspace_path": str(workspace), "model": "x"})
    ]


@pytest.mark.requirement("A2A-035", "A2A-043", "A2A-044", "A2A-048")
async def test_live_content_is_whole_each_time_and_gone_with_the_result(serve: Serve, workspace: Path) -> None:
    def call(status: str, **more: Any) -> ToolCall:
        data = {"tool_call_id": "c", "status": status, "tool_name": "run_shell_command", **more}
        return from_json(ToolCall, {**data, "input_parameters": dict[str, Any]()})

    gates = {"a": asyncio.Event(), "ab": asyncio.Event()}
    script = (
        ToolCallUpdate(call("EXECUTING")),
        Progress(ToolCallUpdate(call("EXECUTING", live_content="a"))),
        Wait(gates["a"]),
        Progress(ToolCallUpdate(call("EXECUTING", live_content="ab"))),
        Wait(gates["ab"]),
        ToolCallUpdate(call("SUCCEEDED", output={"text": "abc"})),
    )
    updates: list[tuple[bool, dict[str, Any]]] = []
    async with serve(lambda _: script) as server, server.opened("message/stream", prompt("run", workspace)) as items:
        async for item in items:
            if item.kind == "TOOL_CALL_UPDATE":
                updates.append((item.id is None, item.data))
                if "live_content" in item.data:
                    gates[item.data["live_content"]].set()
    assert [(ephemeral, data.get("live_content")) for ephemeral, data in updates] == [
        (False, None),
        (True, "a"),
        (True, "ab"),
        (False, None),
    ]
    assert updates[-1][1]["output"] == {"text": "abc"}


@pytest.mark.requirement("A2A-029", "A2A-064", "A2A-073", "A2A-081")
@pytest.mark.parametrize(
    ("name", "details", "encoded"),
    [
        ("execute_details", ExecuteDetails("ls -l", "/w"), {"command": "ls -l", "working_directory": "/w"}),
        ("mcp_details", McpDetails("git", "log"), {"server_name": "git", "tool_name": "log"}),
        ("generic_details", GenericDetails("Fetch a page"), {"description": "Fetch a page"}),
    ],
)
async def test_every_kind_of_question_goes_out_whole(
    serve: Serve, workspace: Path, name: str, details: object, encoded: dict[str, str]
) -> None:
    options = (ConfirmationOption("proceed_once", "Allow once", "Only this time"), ConfirmationOption("cancel", "No"))
    request = replace(ConfirmationRequest(options), **{name: details})
    call = ToolCall("c", ToolCallStatus.PENDING, "tool", {}, confirmation_request=request)
    async with serve(lambda _: (Ask((call,)),)) as server:
        events = await server.stream("message/stream", prompt("ask", workspace))
    assert events[-1].data["confirmation_request"] == {
        "options": [
            {"id": "proceed_once", "name": "Allow once", "description": "Only this time"},
            {"id": "cancel", "name": "No"},
        ],
        name: encoded,
    }


@pytest.mark.requirement("A2A-047", "A2A-054", "A2A-060", "A2A-062")
async def test_a_call_that_fails_has_its_error(serve: Serve, workspace: Path) -> None:
    request = ConfirmationRequest((ConfirmationOption("proceed_once", "Yes"),), generic_details=GenericDetails("x"))
    call = ToolCall("c", ToolCallStatus.PENDING, "failing", {}, confirmation_request=request)
    async with serve(lambda _: (Ask((call,)),)) as server:
        task, *_ = await server.stream("message/stream", prompt("ask", workspace))
        events = await server.stream("message/stream", answer(task.result["id"], allow("c")))
    assert events[1].data["status"] == "FAILED"
    assert events[1].data["error"] == {"message": "no space", "type": "disk", "status_code": 28}
    assert "output" not in events[1].data


async def test_whole_numbers_and_key_order_of_tool_arguments_survive(server: RawClient, workspace: Path) -> None:
    pending = (await asked(server, workspace))[3]
    assert pending.data["input_parameters"]["id"] == 9007199254740993
    assert list(pending.data["input_parameters"]) == ["file_path", "content", "id"]
    assert list(pending.result) == ["kind", "taskId", "contextId", "status", "final", "metadata"]


async def test_several_calls_wait_and_the_stream_of_one_answer_ends_while_others_wait(
    serve: Serve, workspace: Path
) -> None:
    calls = (write_file_call("one"), write_file_call("two"), write_file_call("three"))
    async with serve(lambda _: (Ask(calls), TextContent("t", "Done."))) as server:
        task, *events = await server.stream("message/stream", prompt("edit", workspace))
        waiting = [part["data"]["tool_call_id"] for part in events[-1].result["status"]["message"]["parts"]]
        assert waiting == ["one", "two", "three"]

        first = await server.stream("message/stream", answer(task.result["id"], allow("two")))
        assert [event.data["status"] for event in first[:2]] == ["EXECUTING", "SUCCEEDED"]
        assert (first[-1].state, first[-1].result["final"]) == ("input-required", True)
        waiting = [part["data"]["tool_call_id"] for part in first[-1].result["status"]["message"]["parts"]]
        assert waiting == ["one", "three"]

        rest = await server.stream("message/stream", answer(task.result["id"], allow("one"), allow("three")))
        assert rest[-1].state == "completed"


async def test_a_retry_is_a_state_change_that_says_why(serve: Serve, workspace: Path) -> None:
    notice = RetryNotice(2, 5, 1.5, "429 Too Many Requests")
    async with serve(lambda _: (notice,)) as server:
        events = await server.stream("message/stream", prompt("hello", workspace))
    assert (events[2].kind, events[2].state, events[2].result["final"]) == ("STATE_CHANGE", "working", False)
    assert events[2].result["metadata"][URI]["error"] == "429 Too Many Requests; attempt 2 of 5 follows in 1.5 s"


async def test_a_failed_task_says_why(serve: Serve, workspace: Path) -> None:
    async with serve(lambda _: (RuntimeError("the model is gone"),)) as server:
        events = await server.stream("message/stream", prompt("hello", workspace))
        task = await server.result("tasks/get", {"id": events[0].result["id"]})
    assert (events[-1].state, events[-1].result["final"]) == ("failed", True)
    assert events[-1].result["metadata"][URI]["error"] == "the model is gone"
    assert events[-1].text == task["status"]["message"]["parts"][0]["text"] == "the model is gone"


@pytest.mark.requirement("A2A-151")
async def test_a_completed_task_goes_on_under_its_id(server: RawClient, workspace: Path) -> None:
    task, *_ = await server.stream("message/stream", prompt("hello", workspace))
    events = await server.stream("message/stream", prompt("more", taskId=task.result["id"]))
    assert [event.result["taskId"] for event in events] == [task.result["id"]] * len(events)
    assert (events[0].kind, events[0].state) == ("STATE_CHANGE", "working")
    assert events[-1].state == "completed"


async def test_an_unusual_character_in_a_text_does_not_end_a_line_of_the_stream(serve: Serve, workspace: Path) -> None:
    text = "a\u2028b\u2029c\x85d\r\ne\vf"
    thought = Thought(AgentThought("s", text))
    async with serve(lambda _: (thought, TextContent("t", text))) as server:
        events = await server.stream("message/stream", prompt("hello", workspace))
        raw = await server.http.post(server.url, json={"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {}})
    assert raw.status_code == 200
    assert [event.text for event in events if event.kind == "TEXT_CONTENT"] == [text]
