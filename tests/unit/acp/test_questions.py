"""Questions to the user as requests to clients, and the answers. The JSON fits the official schema."""

from dataclasses import replace
from typing import Any

import pytest

from isthmus.acp.front.questions import answer_of, question_of
from isthmus.acp.front.wire_v1 import FrontWireV1
from isthmus.acp.v1.client_requests import FormElicitation, PermissionRequest, UrlElicitation
from isthmus.acp.v1.connection import ElicitationCapabilities, Present
from isthmus.development_tool import (
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    ModifiedFileDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.errors import DecodeError
from support import acp_schema

NOTHING = ElicitationCapabilities()
EVERYTHING = ElicitationCapabilities(Present(), Present())
OPTIONS = (
    ConfirmationOption("proceed_once", "Allow once"),
    ConfirmationOption("proceed_always", "Always allow", "In this session"),
    ConfirmationOption("proceed_always_tool", "Always allow the tool"),
    ConfirmationOption("cancel", "Reject"),
    ConfirmationOption("reject_always", "Never"),
    ConfirmationOption("other", "Something else"),
)
EDIT = ToolCall(
    "c1",
    ToolCallStatus.PENDING,
    "write_file",
    {"file_path": "a"},
    confirmation_request=ConfirmationRequest(OPTIONS[:1], file_edit_details=FileDiff("a", "/w/a", "new", "old")),
)
COMMAND = replace(EDIT, confirmation_request=ConfirmationRequest(OPTIONS, execute_details=ExecuteDetails("ls")))
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
FORM = replace(EDIT, tool_name="elicitation", input_parameters={
    "message": "Who?", "server": "crm", "requested_schema": SCHEMA,
})  # fmt: skip
PAGE = ToolCall(
    "c2",
    ToolCallStatus.PENDING,
    "elicitation",
    {"message": "Log in", "url": "https://example.org/login"},
    confirmation_request=ConfirmationRequest(OPTIONS[:1], execute_details=ExecuteDetails("open")),
)


def asked(call: ToolCall, shows: ElicitationCapabilities = NOTHING) -> tuple[str, dict[str, Any]]:
    question = question_of(call, "s1", "/w", shows)
    params = dict(FrontWireV1().question(question))
    acp_schema.check(acp_schema.definition_of(question.METHOD, "Request"), params)
    return question.METHOD, params


def test_a_call_that_waits_is_a_request_for_permission_with_all_of_the_call() -> None:
    assert asked(EDIT) == (
        "session/request_permission",
        {
            "sessionId": "s1",
            "toolCall": {
                "toolCallId": "c1",
                "title": "write_file",
                "kind": "edit",
                "status": "pending",
                "content": [{"type": "diff", "path": "/w/a", "newText": "new", "oldText": "old"}],
                "locations": [{"path": "/w/a"}],
                "rawInput": {"file_path": "a"},
                "name": "write_file",
            },
            "options": [{"optionId": "proceed_once", "name": "Allow once", "kind": "allow_once"}],
        },
    )


def test_each_option_has_the_kind_of_its_meaning() -> None:
    _, params = asked(COMMAND)
    assert [(option["optionId"], option["kind"]) for option in params["options"]] == [
        ("proceed_once", "allow_once"),
        ("proceed_always", "allow_always"),
        ("proceed_always_tool", "allow_always"),
        ("cancel", "reject_once"),
        ("reject_always", "reject_always"),
        ("other", "allow_once"),
    ]


def test_a_form_is_shown_by_clients_that_can_and_asked_for_permission_by_others() -> None:
    assert asked(FORM, EVERYTHING) == (
        "elicitation/create",
        {
            "mode": "form",
            "message": "The MCP server crm asks: Who?",
            "requestedSchema": SCHEMA,
            "sessionId": "s1",
            "toolCallId": "c1",
        },
    )
    assert asked(FORM)[0] == "session/request_permission"
    assert asked(FORM, ElicitationCapabilities(url=Present()))[0] == "session/request_permission"


def test_a_page_is_opened_by_clients_that_can() -> None:
    assert asked(PAGE, EVERYTHING) == (
        "elicitation/create",
        {
            "mode": "url",
            "message": "Log in",
            "url": "https://example.org/login",
            "elicitationId": "c2",
            "sessionId": "s1",
            "toolCallId": "c2",
        },
    )
    assert asked(PAGE, ElicitationCapabilities(form=Present()))[0] == "session/request_permission"


def answer(call: ToolCall, result: object, shows: ElicitationCapabilities = NOTHING) -> ToolCallConfirmation | None:
    question = question_of(call, "s1", "/w", shows)
    return answer_of(question, call, result)


def test_the_option_that_the_user_selected_is_the_answer() -> None:
    assert answer(COMMAND, {"outcome": {"outcome": "selected", "optionId": "proceed_always"}}) == (
        ToolCallConfirmation("c1", "proceed_always")
    )


def test_a_cancelled_outcome_is_not_an_answer() -> None:
    assert answer(COMMAND, {"outcome": {"outcome": "cancelled"}}) is None


@pytest.mark.parametrize(
    "result",
    [
        {"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "_meta": {"isthmus": {"newContent": "mine"}}},
        {"outcome": {"outcome": "selected", "optionId": "proceed_once", "_meta": {"isthmus": {"newContent": "mine"}}}},
    ],
)
def test_content_that_the_user_edited_goes_with_the_answer_to_an_edit(result: dict[str, Any]) -> None:
    assert answer(EDIT, result) == ToolCallConfirmation("c1", "proceed_once", ModifiedFileDetails("mine"))
    assert answer(COMMAND, result) == ToolCallConfirmation("c1", "proceed_once")


@pytest.mark.parametrize("meta", [None, {}, {"isthmus": "x"}, {"isthmus": {"newContent": 5}}, {"isthmus": {}}])
def test_other_members_of_peers_change_nothing(meta: object) -> None:
    result = {"outcome": {"outcome": "selected", "optionId": "proceed_once"}, "_meta": meta}
    assert answer(EDIT, result) == ToolCallConfirmation("c1", "proceed_once")


@pytest.mark.parametrize(
    "result",
    [
        None,
        5,
        [],
        {},
        {"outcome": None},
        {"outcome": "selected"},
        {"outcome": {}},
        {"outcome": {"outcome": "later"}},
        {"outcome": {"outcome": "selected"}},
        {"outcome": {"outcome": "selected", "optionId": 5}},
    ],
)
def test_anything_else_is_not_an_answer(result: object) -> None:
    with pytest.raises(DecodeError):
        answer(EDIT, result)


def test_a_filled_form_is_answered_with_its_content() -> None:
    result = {"action": "accept", "content": {"name": "Zoë", "n": 1}}
    assert answer(FORM, result, EVERYTHING) == (
        ToolCallConfirmation("c1", "accept", ModifiedFileDetails('{\n  "name": "Zoë",\n  "n": 1\n}\n'))
    )
    assert answer(FORM, {"action": "accept"}, EVERYTHING) == (
        ToolCallConfirmation("c1", "accept", ModifiedFileDetails("{}\n"))
    )


@pytest.mark.parametrize(("action", "option"), [("decline", "decline"), ("cancel", "cancel"), ("shrug", "cancel")])
def test_a_form_or_page_that_is_not_accepted_is_refused(action: str, option: str) -> None:
    assert answer(FORM, {"action": action, "content": {"name": "x"}}, EVERYTHING) == ToolCallConfirmation("c1", option)
    assert answer(PAGE, {"action": action}, EVERYTHING) == ToolCallConfirmation("c2", option)


def test_a_page_that_was_opened_is_accepted() -> None:
    assert answer(PAGE, {"action": "accept"}, EVERYTHING) == ToolCallConfirmation("c2", "accept")


TYPED = replace(EDIT, tool_name="ask_user", input_parameters={
    "questions": [{"question": "Which name?", "header": "Name", "type": "text", "placeholder": "short"}],
}, confirmation_request=ConfirmationRequest(
    (OPTIONS[0], OPTIONS[3]), file_edit_details=FileDiff("answer.json", "/w/answer.json", "{}")
))  # fmt: skip


def test_a_question_of_the_agent_for_a_text_is_a_form_too() -> None:
    assert asked(TYPED, EVERYTHING) == (
        "elicitation/create",
        {
            "mode": "form",
            "message": "Which name?",
            "requestedSchema": {
                "type": "object",
                "properties": {"answer": {"type": "string", "title": "Name", "description": "short"}},
                "required": [],
            },
            "sessionId": "s1",
            "toolCallId": "c1",
        },
    )
    assert asked(TYPED)[0] == "session/request_permission"
    content = '{\n  "answer": "Zephyr"\n}\n'
    assert answer(TYPED, {"action": "accept", "content": {"answer": "Zephyr"}}, EVERYTHING) == (
        ToolCallConfirmation("c1", "proceed_once", ModifiedFileDetails(content))
    )
    for action in ("decline", "cancel", "shrug"):
        assert answer(TYPED, {"action": action}, EVERYTHING) == ToolCallConfirmation("c1", "cancel")


def test_each_question_has_a_method_of_the_protocol() -> None:
    assert {kind.METHOD for kind in (PermissionRequest, FormElicitation, UrlElicitation)} == {
        "session/request_permission",
        "elicitation/create",
    }
