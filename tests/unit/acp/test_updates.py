"""Events of a task as updates of a session. What goes out stands here as JSON, and fits the official schema."""

from dataclasses import replace
from typing import Any

import pytest

from isthmus.acp.front.updates import UpdateEncoder
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import to_camel_json
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactPart,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import ContextNote
from support import acp_schema

ASKED = ConfirmationRequest((ConfirmationOption("proceed_once", "Allow once"),), execute_details=ExecuteDetails("ls"))
CALL = ToolCall("c1", ToolCallStatus.PENDING, "run_shell_command", {"command": "ls"}, confirmation_request=ASKED)


def sent(encoder: UpdateEncoder, *events: AgentEvent) -> list[dict[str, Any]]:
    updates = [to_camel_json(update) for event in events for update in encoder.updates(event)]
    for update in updates:
        acp_schema.check_update(update)
    return updates


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


@pytest.mark.parametrize(
    ("event", "update"),
    [
        (
            TextContent("m1", "Hello"),
            {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": text("Hello")},
        ),
        (
            TextContent("m2", "Again", replaces="m1"),
            {
                "sessionUpdate": "agent_message_chunk",
                "messageId": "m2",
                "content": text("Again"),
                "_meta": {"isthmus": {"replacesMessageId": "m1"}},
            },
        ),
        (
            AgentMessage("m3", "Whole"),
            {"sessionUpdate": "agent_message_chunk", "messageId": "m3", "content": text("Whole")},
        ),
        (
            Thought(AgentThought("Plan", "Read it.")),
            {"sessionUpdate": "agent_thought_chunk", "content": text("**Plan**\nRead it.\n")},
        ),
        (
            Thought(AgentThought("", "Read it.")),
            {"sessionUpdate": "agent_thought_chunk", "content": text("Read it.\n")},
        ),
        (
            RetryNotice(2, 5, 1.6, "rate limit"),
            {
                "sessionUpdate": "agent_thought_chunk",
                "content": text("The model is asked again in 2 s (attempt 2 of 5): rate limit\n"),
            },
        ),
        (
            Prompt("p1", "Do it"),
            {"sessionUpdate": "user_message_chunk", "messageId": "p1", "content": text("Do it")},
        ),
        (Prompt("", "Do it"), {"sessionUpdate": "user_message_chunk", "content": text("Do it")}),
        (
            Command("p2", ("memory", "add"), "a fact"),
            {"sessionUpdate": "user_message_chunk", "messageId": "p2", "content": text("/memory add a fact")},
        ),
        (
            Command("p2", ("about",)),
            {"sessionUpdate": "user_message_chunk", "messageId": "p2", "content": text("/about")},
        ),
        (
            StateChange(TaskState.FAILED, "no model", "model"),
            {"sessionUpdate": "agent_message_chunk", "content": text("\nno model\n")},
        ),
    ],
)
def test_an_event_is_one_update(event: AgentEvent, update: dict[str, Any]) -> None:
    assert sent(UpdateEncoder("/w"), event) == [update]


@pytest.mark.parametrize(
    "event",
    [
        AgentMessage("m1", "Streamed before", was_streamed=True),
        StateChange(TaskState.WORKING),
        StateChange(TaskState.COMPLETED),
        StateChange(TaskState.CANCELED, "stopped"),
        ConfirmationAccepted(ToolCallConfirmation("c1", "proceed_once"), "someone"),
        ContextNote("editor", "for the model alone"),
    ],
)
def test_what_is_not_for_the_user_is_not_sent(event: AgentEvent) -> None:
    assert sent(UpdateEncoder("/w"), event) == []


def test_own_messages_are_not_sent_back_until_the_session_is_replayed() -> None:
    encoder = UpdateEncoder("/w")
    encoder.own_messages.update(("p1", "p2"))
    own = (Prompt("p1", "mine"), Command("p2", ("about",)))
    assert sent(encoder, *own) == []
    encoder.begin_replay()
    assert [update["content"]["text"] for update in sent(encoder, *own)] == ["mine", "/about"]


def test_every_part_of_a_message_is_a_block_of_its_kind() -> None:
    parts = (
        ArtifactPart(text="See"),
        ArtifactPart(raw="aW1n", media_type="image/png"),
        ArtifactPart(raw="YmxvYg==", media_type="application/pdf", filename="a.pdf"),
        ArtifactPart(raw="YmxvYg=="),
        ArtifactPart(url="https://example.org/x", filename="x"),
        ArtifactPart(data={"snake_case": "é"}),
    )
    blocks = [update["content"] for update in sent(UpdateEncoder("/w"), ArtifactUpdate("a1", parts))]
    assert blocks == [
        {"type": "text", "text": "See"},
        {"type": "image", "data": "aW1n", "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {"uri": "attachment:a.pdf", "mimeType": "application/pdf", "blob": "YmxvYg=="},
        },
        {"type": "resource", "resource": {"uri": "attachment:file", "blob": "YmxvYg=="}},
        {"type": "resource_link", "uri": "https://example.org/x", "name": "x"},
        {"type": "text", "text": '```json\n{\n  "snake_case": "é"\n}\n```'},
    ]
    assert blocks == [update["content"] for update in sent(UpdateEncoder("/w"), Prompt("p", "See", parts=parts))]


def test_a_call_is_sent_whole_once_and_then_only_what_changed() -> None:
    encoder = UpdateEncoder("/w")
    running = replace(CALL, status=ToolCallStatus.EXECUTING, confirmation_request=None)
    done = replace(running, status=ToolCallStatus.SUCCEEDED, output=ToolOutput(text="a\n"))
    events = (CALL, running, replace(running, live_content="a"), done)
    assert sent(encoder, *map(ToolCallUpdate, events)) == [
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c1",
            "title": "run_shell_command",
            "kind": "execute",
            "status": "pending",
            "content": [{"type": "content", "content": {"type": "text", "text": "```sh\nls\n```"}}],
            "rawInput": {"command": "ls"},
            "name": "run_shell_command",
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "in_progress"},
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "content": [{"type": "content", "content": {"type": "text", "text": "```\na\n```"}}],
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"},
    ]


def test_a_call_that_did_not_change_is_not_sent_again() -> None:
    encoder = UpdateEncoder("/w")
    assert len(sent(encoder, ToolCallUpdate(CALL), ToolCallUpdate(CALL))) == 1
    assert [to_camel_json(update) for update in encoder.call(CALL)] == []


def test_after_the_beginning_of_a_replay_a_call_is_sent_whole_again() -> None:
    encoder = UpdateEncoder("/w")
    first = sent(encoder, ToolCallUpdate(CALL))
    encoder.begin_replay()
    assert sent(encoder, ToolCallUpdate(CALL)) == first


def test_nothing_follows_the_end_of_a_call_but_another_call_may_have_its_id() -> None:
    encoder = UpdateEncoder("/w")
    running = ToolCall("c1", ToolCallStatus.EXECUTING, "glob", {})
    ended = ToolCall("c1", ToolCallStatus.SUCCEEDED, "glob", {})
    sent = [len(list(encoder.call(call))) for call in (running, ended, ended, running)]
    assert sent == [1, 1, 0, 0]
    (again,) = encoder.call(ToolCall("c1", ToolCallStatus.PENDING, "read_file", {}))
    assert to_camel_json(again)["sessionUpdate"] == "tool_call"


TODOS = ToolCall(
    "t1",
    ToolCallStatus.PENDING,
    "write_todos",
    {"todos": [{"description": "Read", "status": "completed"}, {"description": "Ask", "status": "blocked"}]},
)
PLAN = {
    "sessionUpdate": "plan",
    "entries": [
        {"content": "Read", "priority": "medium", "status": "completed"},
        {"content": "Ask", "priority": "medium", "status": "pending"},
    ],
}


def test_a_list_of_things_to_do_is_the_plan_and_not_a_call() -> None:
    encoder = UpdateEncoder("/w")
    steps = [replace(TODOS, status=status) for status in (ToolCallStatus.PENDING, ToolCallStatus.EXECUTING)]
    done = replace(TODOS, status=ToolCallStatus.SUCCEEDED, output=ToolOutput(text="- [x] Read"))
    assert sent(encoder, *map(ToolCallUpdate, (*steps, done, done))) == [PLAN]
    encoder.begin_replay()
    assert sent(encoder, ToolCallUpdate(done)) == [PLAN]


def test_a_list_that_is_asked_about_or_refused_is_a_call() -> None:
    asked = ToolCallUpdate(replace(TODOS, confirmation_request=ASKED))
    done = ToolCallUpdate(replace(TODOS, status=ToolCallStatus.SUCCEEDED))
    refused = ToolCallUpdate(replace(TODOS, tool_call_id="t2", status=ToolCallStatus.FAILED))
    updates = sent(UpdateEncoder("/w"), asked, done, refused)
    assert [update["sessionUpdate"] for update in updates] == ["tool_call", "plan", "tool_call_update", "tool_call"]
