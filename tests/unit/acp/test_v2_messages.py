"""Messages of the draft of version 2. What goes out stands here as JSON, and fits the draft's schema."""

import itertools
from dataclasses import replace
from typing import Any

import pytest

from isthmus.acp.front.prompts import available_commands
from isthmus.acp.front.questions import question_of
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.front.updates import UpdateEncoder
from isthmus.acp.front.wire import FrontAbilities, FrontUpdate, PromptAccepted, StateReport, TurnError, TurnState
from isthmus.acp.front.wire_v1 import FrontWireV1
from isthmus.acp.v1 import connection, sessions
from isthmus.acp.v1.connection import ElicitationCapabilities, Present
from isthmus.acp.v1.content import TextBlock
from isthmus.acp.v1.updates import (
    CommandsUpdate,
    ConfigOptionsUpdate,
    ModeUpdate,
    PlanEntry,
    PlanUpdate,
    SessionInfoUpdate,
    UsageUpdate,
)
from isthmus.acp.v2.wire import FrontWireV2
from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    SlashCommand,
    SlashCommandArgument,
    ToolCall,
    ToolCallStatus,
)
from isthmus.errors import DecodeError
from isthmus.events import AgentEvent, AgentMessage, Prompt, StateChange, TaskState, TextContent, Thought
from isthmus.rpc.messages import RpcError
from support import acp_schema

OPTIONS = (ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))
SHOWN_OPTIONS = [
    {"optionId": "proceed_once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
]
EDIT = ToolCall(
    "c1",
    ToolCallStatus.PENDING,
    "write_file",
    {"file_path": "a"},
    "Write a",
    confirmation_request=ConfirmationRequest(OPTIONS, file_edit_details=FileDiff("a", "/w/a", "new\n", "old\n")),
)
COMMAND = replace(
    EDIT,
    tool_name="run_shell_command",
    description="Lists",
    confirmation_request=ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails("ls", "src")),
)
NOTHING = ElicitationCapabilities()
PATCH = "diff --git /w/a /w/a\n--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-old\n+new\n"
DIFF = {
    "type": "diff",
    "changes": [{"operation": "modify", "path": "/w/a", "fileType": "text"}],
    "patch": {"format": "git_patch", "text": PATCH},
}


def wire() -> FrontWireV2:
    """Return a wire whose own ids are new-1, new-2 and so on."""
    numbers = itertools.count(1)
    return FrontWireV2(lambda: f"new-{next(numbers)}")


def written(*updates: FrontUpdate) -> list[dict[str, Any]]:
    used = wire()
    sent = [dict(body) for update in updates for body in used.updates(update)]
    for body in sent:
        acp_schema.check_update(body, 2)
    return sent


def shown(*events: AgentEvent) -> list[dict[str, Any]]:
    encoder = UpdateEncoder("/w")
    return written(*(update for event in events for update in encoder.updates(event)))


def asked(call: ToolCall, shows: ElicitationCapabilities = NOTHING) -> dict[str, Any]:
    question = question_of(call, "s1", "/w", shows)
    params = dict(wire().question(question))
    acp_schema.check(acp_schema.definition_of(question.METHOD, "Request", 2), params, 2)
    return params


def text(content: str) -> dict[str, str]:
    return {"type": "text", "text": content}


# --- the start ---


def test_the_greeting_nests_capabilities_and_names_logins() -> None:
    methods = (
        connection.AgentAuth("environment", "Keys"),
        connection.TerminalAuth("setup", "Set up", None, ("--setup",), {"A": "1"}),
    )
    greeting = wire().greeting(FrontAbilities("1.0", can_delete=True, takes_images=True, auth_methods=methods))
    assert greeting == {
        "protocolVersion": 2,
        "info": {"name": "isthmus", "version": "1.0", "title": "Isthmus"},
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
            },
            "_meta": {"isthmus": {"editedAnswers": True}},
        },
        "authMethods": [
            {"type": "agent", "methodId": "environment", "name": "Keys"},
            {
                "type": "terminal",
                "methodId": "setup",
                "name": "Set up",
                "args": ["--setup"],
                "env": [{"name": "A", "value": "1"}],
            },
        ],
    }
    acp_schema.check("InitializeResponse", greeting, 2)


def test_what_a_client_can_is_read_from_objects() -> None:
    request = wire().read_initialize({
        "protocolVersion": 2,
        "info": {"name": "ed", "version": "1"},
        "capabilities": {"auth": {"terminal": {}}, "elicitation": {"form": {}}},
    })  # fmt: skip
    assert request.client_info == connection.Implementation("ed", "1")
    assert request.client_capabilities == connection.ClientCapabilities(
        auth=connection.AuthCapabilities(True), elicitation=ElicitationCapabilities(Present())
    )
    with pytest.raises(DecodeError, match=r"params\.info"):
        wire().read_initialize({"protocolVersion": 2})


# --- requests ---


def test_a_session_begins_with_servers_that_all_name_their_type() -> None:
    servers = [
        {"type": "stdio", "name": "a", "command": "/bin/a"},
        {"type": "http", "name": "b", "url": "https://b.example/"},
    ]
    request = wire().read("session/new", {"cwd": "/w", "mcpServers": servers})
    assert isinstance(request, sessions.NewSessionRequest)
    assert request.mcp_servers is not None
    first, second = request.mcp_servers
    assert isinstance(first, sessions.CommandServer)
    assert first.command == "/bin/a"
    assert isinstance(second, sessions.HttpMcpServer)
    for kind in ({}, {"type": "sse"}, {"type": "_carrier-pigeon"}):
        server = {"name": "c", "url": "https://c.example/", **kind}
        with pytest.raises(DecodeError, match="expected one of http, stdio"):
            wire().read("session/new", {"cwd": "/w", "mcpServers": [server]})


def test_resume_replays_only_when_it_is_asked_to_from_the_start() -> None:
    about = {"sessionId": "s", "cwd": "/w"}
    assert wire().read("session/resume", about) == sessions.ResumeSessionRequest("s", "/w")
    assert wire().read("session/resume", {**about, "replayFrom": None}) == sessions.ResumeSessionRequest("s", "/w")
    loaded = wire().read("session/resume", {**about, "replayFrom": {"type": "start"}})
    assert loaded == sessions.LoadSessionRequest("s", "/w")
    with pytest.raises(RpcError, match=r"replayFrom\.type: expected start, received 'message'"):
        wire().read("session/resume", {**about, "replayFrom": {"type": "message", "messageId": "m"}})


@pytest.mark.parametrize("method", ["session/load", "session/set_mode", "authenticate", "logout", "session/fork"])
def test_methods_of_version_1_alone_are_unknown(method: str) -> None:
    assert wire().read(method, {"sessionId": "s", "cwd": "/w", "modeId": "plan", "methodId": "x"}) is None


def test_logins_have_new_names() -> None:
    assert wire().read("auth/login", {"methodId": "x"}) == connection.AuthenticateRequest("x")
    assert wire().read("auth/logout", {}) == connection.LogoutRequest()


# --- options and commands ---


def test_a_session_has_options_and_not_modes() -> None:
    answer = wire().session("s1", SessionOptions("plan", "demo"))
    acp_schema.check("NewSessionResponse", answer, 2)
    assert answer["sessionId"] == "s1"
    assert [(item["configId"], item["currentValue"]) for item in answer["configOptions"]] == [
        ("mode", "plan"),
        ("model", "demo"),
    ]
    assert answer.keys() == {"sessionId", "configOptions"}
    acp_schema.check("ResumeSessionResponse", wire().session(None, SessionOptions()), 2)
    acp_schema.check("SetSessionConfigOptionResponse", wire().options(SessionOptions()), 2)
    assert written(ModeUpdate("plan")) == []
    (changed,) = written(ConfigOptionsUpdate(SessionOptions("plan").config_options))
    assert changed["configOptions"][0]["configId"] == "mode"


def test_the_arguments_of_commands_have_a_type() -> None:
    tree = (
        SlashCommand("about", "Says what this is"),
        SlashCommand("model", "Sets the model", (SlashCommandArgument("name", "", True),)),
    )
    assert written(CommandsUpdate(available_commands(tree))) == [
        {
            "sessionUpdate": "available_commands_update",
            "availableCommands": [
                {"type": "command", "name": "about", "description": "Says what this is"},
                {
                    "type": "command",
                    "name": "model",
                    "description": "Sets the model",
                    "input": {"type": "text", "hint": "name"},
                },
            ],
        }
    ]


# --- the turn ---


def test_a_turn_is_told_by_states() -> None:
    reports = (
        PromptAccepted("p1", (TextBlock("Do it"),)),
        StateReport(TurnState.RUNNING),
        StateReport(TurnState.REQUIRES_ACTION),
        StateReport(TurnState.IDLE, "end_turn"),
        StateReport(TurnState.IDLE),
        StateReport(TurnState.IDLE, "error", TurnError(-32603, "no model")),
    )
    assert written(*reports) == [
        {"sessionUpdate": "user_message", "messageId": "p1", "content": [text("Do it")]},
        {"sessionUpdate": "state_update", "state": "running"},
        {"sessionUpdate": "state_update", "state": "requires_action"},
        {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"},
        {"sessionUpdate": "state_update", "state": "idle"},
        {
            "sessionUpdate": "state_update",
            "state": "idle",
            "stopReason": "error",
            "error": {"code": -32603, "message": "no model"},
        },
    ]


def test_every_message_has_an_id() -> None:
    sent = shown(
        TextContent("m1", "Hello"),
        AgentMessage("m2", "Whole"),
        Thought(AgentThought("Plan", "Read it.")),
        Prompt("", "More"),
        StateChange(TaskState.FAILED, "no model", "model"),
    )
    assert [(update["sessionUpdate"], update["messageId"]) for update in sent] == [
        ("agent_message_chunk", "m1"),
        ("agent_message_chunk", "m2"),
        ("agent_thought_chunk", "new-1"),
        ("user_message_chunk", "new-2"),
        ("agent_message_chunk", "new-3"),
    ]


@pytest.mark.parametrize("new", ["m2", "m1"])
def test_a_text_that_became_void_is_taken_back(new: str) -> None:
    assert shown(TextContent("m1", "Torn"), TextContent(new, "Again", replaces="m1"))[1:] == [
        {"sessionUpdate": "agent_message", "messageId": "m1", "content": []},
        {"sessionUpdate": "agent_message_chunk", "messageId": new, "content": text("Again")},
    ]


def test_title_and_usage_are_as_in_version_1() -> None:
    assert written(SessionInfoUpdate("A title"), UsageUpdate(10, 200)) == [
        {"sessionUpdate": "session_info_update", "title": "A title"},
        {"sessionUpdate": "usage_update", "used": 10, "size": 200},
    ]


def test_a_tool_call_is_one_kind_of_update_from_its_beginning() -> None:
    encoder = UpdateEncoder("/w")
    cancelled = replace(EDIT, status=ToolCallStatus.CANCELLED, confirmation_request=None)
    assert written(*encoder.call(EDIT), *encoder.call(cancelled)) == [
        {
            "sessionUpdate": "tool_call_update",
            "toolCallId": "c1",
            "title": "Write a",
            "kind": "edit",
            "status": "pending",
            "content": [DIFF],
            "locations": [{"path": "/w/a"}],
            "rawInput": {"file_path": "a"},
            "name": "write_file",
        },
        {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "cancelled"},
    ]


# --- questions ---


def test_a_permission_for_a_change_has_the_call_as_its_subject() -> None:
    assert asked(EDIT) == {
        "sessionId": "s1",
        "title": "Allow this change?",
        "description": "Write a",
        "subject": {
            "type": "tool_call",
            "toolCall": {
                "toolCallId": "c1",
                "title": "Write a",
                "kind": "edit",
                "status": "pending",
                "content": [DIFF],
                "locations": [{"path": "/w/a"}],
                "rawInput": {"file_path": "a"},
                "name": "write_file",
            },
        },
        "options": SHOWN_OPTIONS,
    }


def test_a_permission_for_a_command_has_the_command_as_its_subject() -> None:
    assert asked(COMMAND) == {
        "sessionId": "s1",
        "title": "Run this command?",
        "description": "Lists",
        "subject": {"type": "command", "command": "ls", "cwd": "/w/src", "toolCallId": "c1"},
        "options": SHOWN_OPTIONS,
    }
    for folder, cwd in ((None, "/w"), ("/else", "/else"), ("..", "/")):
        details = ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails("ls", folder))
        assert asked(replace(COMMAND, confirmation_request=details))["subject"]["cwd"] == cwd


def test_a_call_whose_title_asks_is_asked_about_in_its_own_words() -> None:
    details = ConfirmationRequest(OPTIONS, generic_details=GenericDetails("It starts programs"))
    about = replace(EDIT, tool_name="trust", description="Do you trust /w?", confirmation_request=details)
    shown = asked(about)
    assert (shown["title"], shown.get("description")) == ("Do you trust /w?", None)
    other = asked(replace(about, description=None))
    assert (other["title"], other["description"]) == ("Allow this?", "trust")


def test_forms_are_as_in_version_1() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    form = replace(EDIT, tool_name="elicitation", input_parameters={"message": "Who?", "requested_schema": schema})
    assert asked(form, ElicitationCapabilities(Present(), Present())) == {
        "mode": "form",
        "message": "Who?",
        "requestedSchema": schema,
        "sessionId": "s1",
        "toolCallId": "c1",
    }


def test_a_plan_has_an_id_and_keeps_what_was_given_up() -> None:
    plan = PlanUpdate((PlanEntry("Read", status="completed"), PlanEntry("Guess", status="cancelled")))
    entries = [
        {"content": "Read", "priority": "medium", "status": "completed"},
        {"content": "Guess", "priority": "medium", "status": "cancelled"},
    ]
    assert written(plan) == [
        {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": "todos", "entries": entries}}
    ]
    assert list(FrontWireV1().updates(plan)) == [{"sessionUpdate": "plan", "entries": entries[:1]}]
