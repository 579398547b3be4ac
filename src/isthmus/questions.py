"""Questions of tool calls: what asks them, their ids, and the options that allow or refuse a call."""

from collections.abc import Sequence
from enum import StrEnum

from isthmus.development_tool import ConfirmationOption, ToolCall

ELICITATION = "elicitation"
"""Tool name of a call by which an MCP server, or a hosted agent, asks the user for information."""
SAMPLING = "sampling"
"""Tool name of a call by which an MCP server asks the model."""
QUESTION_MARK = "?"
"""Separator in the id of a question: the id of the call that asks, this mark, and a number or another call's id."""
ASKED_IN = "asked_in"
"""Key, in the input parameters of a question with this mark, of the tool name of the call that asks."""
LOOP_QUESTION = "continue_repeating"
"""Tool name of the question whether a model that repeats itself may go on."""
QUESTION_TOOLS = frozenset((ELICITATION, SAMPLING, LOOP_QUESTION))
"""Tool names of calls that are only questions; no tool runs after the answer."""
APPROVAL_REQUIRED = "approval_required"
"""Type of the error of a call that a user could have allowed, where no user can be asked."""
ACCEPTING_OPTIONS = ("proceed_once", "accept", "allow_once", "allow-once", "allow", "once", "approved", "yes")
"""Ids of options that allow a call once, ours first; hosted agents have ids of their own."""
REFUSING_OPTIONS = ("cancel", "reject_once", "reject-once", "reject", "deny", "denied", "abort")
"""Ids of options that refuse a call, ours first."""


class CallRisk(StrEnum):
    """Reason to look twice at a call; each is stated only where it is known, so the absence of one promises nothing."""

    DELETES = "deletes"
    """Files are deleted."""
    NETWORK = "network"
    """Other machines are reached."""
    NO_SANDBOX = "no_sandbox"
    """A command runs outside of a sandbox."""
    SECRETS = "secrets"
    """A file that may hold secrets is read or changed."""
    STARTS_PROGRAMS = "starts_programs"
    """A file is changed with which other programs start programs by themselves."""


def refuses(option: ConfirmationOption) -> bool:
    """Return whether an option refuses a call, by the kind that its agent states, otherwise by its id."""
    return option.kind.startswith("reject") if option.kind else option.id.casefold() in REFUSING_OPTIONS


def offered_option(call: ToolCall, wanted: Sequence[str], kind: str) -> str:
    """Return the option of a call's question that is stated to be of this kind, otherwise the first of these ids.

    If the question offers none of them, the first id is returned all the same, and the agent will refuse it.
    """
    request = call.confirmation_request
    options = request.options if request is not None else ()
    stated = next((option.id for option in options if option.kind == kind), None)
    offered = {option.id for option in options}
    return stated or next((option_id for option_id in wanted if option_id in offered), wanted[0])
