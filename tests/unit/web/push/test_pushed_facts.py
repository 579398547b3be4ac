"""Facts that a notification tells of a question, and the questions that may be answered in it."""

from dataclasses import replace
from typing import Any

import pytest

from isthmus.development_tool import (
    CommandTrial,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.web.push.pushed_facts import (
    PushedAct,
    PushedFacts,
    group_of,
    is_exact,
    pushed_answers,
    pushed_facts,
    question_digest,
)
from support.push_service import OPTIONS, command_call

WORKSPACE, HOME = "/home/me/harbour", "/home/me"


def facts(call: ToolCall) -> PushedFacts:
    return pushed_facts(call, WORKSPACE, HOME)


def answers(call: ToolCall) -> dict[PushedAct, str]:
    return {act: option.id for act, option in pushed_answers(call, facts(call)).items()}


def asking(details: Any, tool: str = "tool", **arguments: object) -> ToolCall:
    request = ConfirmationRequest.of(OPTIONS, details)
    return ToolCall("1", ToolCallStatus.PENDING, tool, arguments, confirmation_request=request)


def test_a_command_that_is_shown_whole_can_be_allowed_once_or_rejected() -> None:
    call = command_call("1")
    assert facts(call) == PushedFacts("command", "npm test", "~/harbour")
    assert answers(call) == {"reject": "cancel", "allow": "proceed_once"}


@pytest.mark.parametrize(
    "command",
    [
        "npm test\nrm -rf ~",
        "npm test\r",
        "npm  test",
        " npm test",
        "npm test ",
        "npm\ttest",
        "x" * 121,
        "npm test \u202e txt.sh",
        "npm te\u200bst",
        "npm\u00a0test",
        "n\u0440m test",
        "echo \u05d0 && rm b",
        "echo e\u0301",
        "echo \x1b[8mrm",
        "echo \ue000",
        "echo \ud800",
        "",
    ],
)
def test_a_command_that_may_look_like_another_is_opened(command: str) -> None:
    call = command_call("1", command)
    assert facts(call).kind == "long"
    assert answers(call) == {}


@pytest.mark.parametrize("command", ["x" * 120, "echo 'a b' && ls | wc -l > out.txt", "echo 你好", "grep ñ x"])
def test_a_short_line_without_hidden_characters_is_exact(command: str) -> None:
    assert is_exact(command)
    assert len(answers(command_call("1", command))) == 2


def test_a_long_command_tells_its_program_its_length_and_its_folder() -> None:
    assert facts(command_call("1", "/usr/bin/docker run " + "x" * 392)) == PushedFacts(
        "long", "docker", "~/harbour", length=412
    )
    assert facts(command_call("1", "$(evil) " + "x" * 200)).text == ""


def test_a_question_that_asks_for_more_than_its_command_is_opened() -> None:
    call = command_call("1")
    request = call.confirmation_request
    assert request is not None
    tried = replace(request, execute_details=ExecuteDetails("npm test", WORKSPACE, CommandTrial("", "no copy")))
    options = (ConfirmationOption("proceed_always", "Always"), ConfirmationOption("allow", "Allow"))
    for other in (
        replace(call, input_parameters={"command": "npm test", "is_background": True}),
        replace(call, tool_call_id="call?1"),
        replace(call, confirmation_request=tried),
        replace(call, confirmation_request=replace(request, options=options)),
        replace(call, confirmation_request=replace(request, words_option="words")),
        command_call("1", folder=None),
        command_call("1", folder="/home/me/har\u202ebour"),
        command_call("1", folder="/" + "x" * 120),
    ):
        assert answers(other) == {}, other


def test_options_are_known_by_their_kind_or_a_certain_id() -> None:
    named = ConfirmationRequest(
        (ConfirmationOption("a", "Yes", kind="allow_once"), ConfirmationOption("b", "Ever", kind="allow_always")),
        ExecuteDetails("ls", "/x"),
    )
    call = replace(command_call("1"), confirmation_request=named)
    assert answers(call) == {"allow": "a"}
    twice = replace(named, options=(*named.options, ConfirmationOption("c", "Yes", kind="allow_once")))
    assert answers(replace(call, confirmation_request=twice)) == {}
    misnamed = replace(named, options=(ConfirmationOption("proceed_once", "Yes", kind="allow_always"),))
    assert answers(replace(call, confirmation_request=misnamed)) == {}


def test_other_questions_tell_what_is_asked_in_general_and_no_content() -> None:
    secret = "SECRET\n" * 3
    change = FileDiff("schedule.py", f"{WORKSPACE}/schedule.py", "a\nb\n" + secret, "a\nc\n")
    cases = [
        (asking(change), PushedFacts("change", "schedule.py", "~/harbour", added=4, removed=1)),
        (asking(replace(change, old_content=None)), PushedFacts("create", "schedule.py", "~/harbour", added=5)),
        (asking(replace(change, file_path="/etc/hosts")), PushedFacts("change", "/etc/hosts", added=4, removed=1)),
        (asking(McpDetails("tickets", "create")), PushedFacts("call", "create", "tickets")),
        (asking(GenericDetails(secret), "restore"), PushedFacts("other", "restore", "~/harbour")),
        (asking(change, "elicitation", message="Which release?\nmore"), PushedFacts("question", "Which release?")),
        (asking(change, "sampling", server="docs"), PushedFacts("model", "docs")),
        (asking(McpDetails("evil\u202e", "x" * 300)), PushedFacts("call", "x" * 119 + "…", "evil\\u202e")),
    ]
    for call, expected in cases:
        assert facts(call) == expected
        assert pushed_answers(call, expected) == {}
    huge = replace(change, old_content="x\n" * 100_000)
    assert facts(asking(huge)) == PushedFacts("change", "schedule.py", "~/harbour")


def test_the_digest_of_a_question_is_of_all_that_it_asks() -> None:
    call = command_call("1")
    request = call.confirmation_request
    assert request is not None
    digest = question_digest(call)
    assert question_digest(command_call("1")) == digest
    assert question_digest(replace(call, live_content="more", description="other")) == digest
    others = [
        command_call("2"),
        command_call("1", "npm tests"),
        command_call("1", folder="/home/me/other"),
        replace(call, input_parameters={**call.input_parameters, "timeout": 1}),
        replace(call, confirmation_request=replace(request, options=OPTIONS[:2])),
    ]
    assert len({digest, *map(question_digest, others)}) == 6


def test_questions_of_one_asker_are_one_form() -> None:
    asked = replace(command_call("call?1"), tool_name="ask_user")
    assert group_of(asked) == group_of(replace(asked, tool_call_id="call?2"))
    assert group_of(asked) != group_of(replace(asked, tool_call_id="other?1"))
    assert group_of(command_call("call?1")) != group_of(command_call("call?2"))
