"""The option that a surface chooses for its user: by the kind that the agent states, otherwise by its id."""

import pytest

from isthmus.development_tool import ConfirmationOption, ConfirmationRequest, GenericDetails, ToolCall, ToolCallStatus
from isthmus.questions import ACCEPTING_OPTIONS, REFUSING_OPTIONS, offered_option, refuses
from isthmus.terminal.questions.questions import refusal


def asked(*options: ConfirmationOption) -> ToolCall:
    request = ConfirmationRequest.of(options, GenericDetails("May it run?"))
    return ToolCall("c1", ToolCallStatus.PENDING, "tool", {}, confirmation_request=request)


OWN = asked(ConfirmationOption("no", "No", kind="reject_once"), ConfirmationOption("go", "Go", kind="allow_once"))
OURS = asked(ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))


@pytest.mark.parametrize(("call", "accepts", "rejects"), [(OWN, "go", "no"), (OURS, "proceed_once", "cancel")])
def test_a_surface_chooses_what_its_user_means(call: ToolCall, accepts: str, rejects: str) -> None:
    assert offered_option(call, ACCEPTING_OPTIONS, "allow_once") == accepts
    assert offered_option(call, REFUSING_OPTIONS, "reject_once") == rejects
    refused = refusal(call)
    assert refused is not None
    assert refused.selected_option_id == rejects


def test_a_stated_kind_counts_more_than_an_id() -> None:
    assert not refuses(ConfirmationOption("deny", "Deny everybody else", kind="allow_once"))
    assert refuses(ConfirmationOption("once", "Not once", kind="reject_always"))
