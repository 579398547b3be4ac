"""Pending tool calls as text questions, and their answers in text, for clients that do not speak the extension."""

import json
from collections.abc import Sequence

from isthmus.development_tool import (
    CommandTrial,
    ConfirmationRequest,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallConfirmation,
)
from isthmus.forms.asked_question import ASK_USER
from isthmus.questions import ACCEPTING_OPTIONS, ELICITATION, REFUSING_OPTIONS, offered_option
from isthmus.text.visible import visible

YES = frozenset(
    (
        *("y", "yes", "yep", "yeah", "ok", "okay", "sure", "allow", "approve", "approved", "accept", "proceed"),
        *("confirm", "confirmed", "go", "ja", "oui", "si", "s\u00ed", "sim", "da", "tak", "evet", "\u0434\u0430"),
        *("\u597d", "\u597d\u7684", "\u662f", "\u662f\u7684", "\u540c\u610f", "\u53ef\u4ee5", "\u306f\u3044"),
        *("\ub124", "\uc608", "\u0646\u0639\u0645"),
    )
)
"""Words that allow once, in small letters: yes in some languages."""
NO = frozenset(
    (
        *("n", "no", "nope", "deny", "denied", "reject", "rejected", "refuse", "cancel", "stop", "don't", "nein"),
        *("non", "nee", "n\u00e3o", "nao", "nie", "hay\u0131r", "\u043d\u0435\u0442", "\u4e0d", "\u5426"),
        *("\u4e0d\u884c", "\u4e0d\u540c\u610f", "\u3044\u3044\u3048", "\uc544\ub2c8\uc694", "\u0644\u0627"),
    )
)
"""Words that refuse."""


def question_text(call: ToolCall) -> str:
    """Return the question that a pending call asks the user, with the possible answers; nothing in it is hidden."""
    request = call.confirmation_request
    lines = [_action(call, request)]
    if request is not None and request.options:
        choices = ", ".join(f"{option.id} ({option.name})" for option in request.options)
        lines.append(
            f"Answer with one of: {choices}; or with a data part "
            f'{{"tool_call_id": "{call.tool_call_id}", "selected_option_id": "..."}}.'
        )
    return visible("\n".join(lines))


def answer_in_text(text: str, pending: Sequence[ToolCall]) -> ToolCallConfirmation | None:
    """Return the answer in a text, if exactly one call waits; otherwise None.

    It is the id or name of an option, or a plain yes or no, for the option that allows once and the one that refuses.
    """
    if len(pending) != 1 or pending[0].confirmation_request is None:
        return None
    call, answer = pending[0], text.strip().strip(".!").casefold()
    for option in pending[0].confirmation_request.options:
        if answer in (option.id.casefold(), option.name.casefold()):
            return ToolCallConfirmation(call.tool_call_id, option.id)
    if _is_to_fill_in(call) or answer not in YES | NO:
        return None
    offered = pending[0].confirmation_request.options
    ids, kind = (ACCEPTING_OPTIONS, "allow_once") if answer in YES else (REFUSING_OPTIONS, "reject_once")
    is_offered = any(option.id in ids or option.kind == kind for option in offered)
    return ToolCallConfirmation(call.tool_call_id, offered_option(call, ids, kind)) if is_offered else None


def is_no_answer(text: str, pending: Sequence[ToolCall]) -> bool:
    """Return whether a text that fits no option leaves the questions open, so that they are asked again.

    A command, words after a no, and words for a question that is to be filled in are for the agent instead.
    """
    first, *more = text.strip().casefold().replace(",", " ").replace(":", " ").split(maxsplit=1) or [""]
    is_reason = first.strip(".!") in NO and bool(more)
    is_asked = any(call.confirmation_request is not None for call in pending)
    return is_asked and not (is_reason or first.startswith("/") or any(map(_is_to_fill_in, pending)))


def _is_to_fill_in(call: ToolCall) -> bool:
    return call.tool_name in (ELICITATION, ASK_USER)


def _action(call: ToolCall, request: ConfirmationRequest | None) -> str:
    match request.details if request is not None else None:
        case ExecuteDetails(command, directory, CommandTrial() as trial) if trial.changes:
            asked = "keep what this command changed" if trial.id else "run this command"
            return f"May {call.tool_name} {asked}{f' in {directory}' if directory else ''}?\n{command}\n{trial.changes}"
        case ExecuteDetails(command, directory):
            return f"May {call.tool_name} run this command{f' in {directory}' if directory else ''}?\n{command}"
        case FileDiff() as document if call.tool_name in (ELICITATION, ASK_USER):
            return f"{call.description or call.tool_name}\n{document.new_content}"
        case FileDiff() as diff:
            return f"May {call.tool_name} change {diff.file_path}?\n{diff.formatted_diff or diff.new_content}"
        case McpDetails(server, tool):
            notes = (call.description or "").strip().split("\n")[1:]
            asked = [f"May the tool {tool} of the MCP server {server} run?", *notes]
            given = [json.dumps(call.input_parameters, ensure_ascii=False)] if call.input_parameters else []
            return "\n".join([*asked, *given])
        case GenericDetails(description) if call.tool_name in (ELICITATION, ASK_USER):
            return description
        case GenericDetails(description):
            return f"May {call.tool_name} go on? {description}"
        case None:
            return f"May {call.tool_name} run?"
