"""Decoder of requests in the dialect ``coderAgent``: A2A 0.3 with other AgentSettings and answers. Sans-I/O.

``metadata.coderAgent`` is ``{"kind": "agent-settings", "workspacePath", "autoExecute"?}`` and may be absent; an answer
is a data part ``{"callId", "outcome", "newContent"?}``. An outcome is not an option of the question;
:func:`choose_options` finds the option that it means.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.coder_agent.vocabulary import KEY, AnswerOutcome, option_id_of
from isthmus.a2a.openings import DIALECT
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.message_decoder import ReadPart, decode_send
from isthmus.a2a.protocol.operations import FollowTask, Operation
from isthmus.a2a.protocol.parameters import flag, mapping, optional_mapping, optional_text, text
from isthmus.a2a.v03.operations import SEND, STREAM, GrammarV03, decode_operation
from isthmus.a2a.wire import Call
from isthmus.client import InvalidRequest
from isthmus.development_tool import ConfirmationRequest, ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import JsonObject

_OUTCOMES = frozenset(outcome.value for outcome in AnswerOutcome)


class CoderAgentGrammar(GrammarV03):
    """Reader of messages: A2A 0.3, but with the dialect's answers, whose outcome stands in for the option."""

    @override
    def part(self, part: Mapping[str, Any], where: str) -> ReadPart:
        data = part.get("data")
        if part.get("kind") == "data" and isinstance(data, Mapping) and ("callId" in data or "outcome" in data):
            return ReadPart(f"{where}.data", data=_answer(cast("Mapping[str, Any]", data), f"{where}.data"))
        return super().part(part, where)


def decode(call: Call) -> Operation:
    """Return the operation that a request asks for.

    Raises:
        RpcError: the method is unknown, or a parameter is invalid.
    """
    if call.method not in (SEND, STREAM):
        operation = decode_operation(call)
        if isinstance(operation, FollowTask) and operation.after:
            # The items of an event depend on the events before it.
            return replace(operation, after=0, known=operation.after)
        return operation
    message = decode_send(call, _GRAMMAR, stream=call.method == STREAM)
    is_new = message.task_id is None
    return replace(
        message,
        # gemini-cli-a2a-server reads them only for a new task.
        settings=settings_of(_stated(call.params)) if is_new else None,
        may_continue_completed=True,
        requires_settings=False,
        answers_in_text=False,
        resolve_answers=choose_options,
        extension="",
    )


def settings_of(stated: Mapping[str, Any], where: str = f"params.message.metadata.{KEY}") -> JsonObject:
    """Return the dialect's AgentSettings as ours; ``autoExecute`` is the approval mode yolo.

    Raises:
        InvalidParamsError: a value has a wrong type, or the path is not absolute.
    """
    settings: dict[str, Any] = {DIALECT: KEY}
    path = optional_text(stated, "workspacePath", where)
    if path is not None:
        if not PurePath(path).is_absolute() or "\0" in path:
            raise InvalidParamsError(f"{where}.workspacePath", f"expected an absolute path, received {path[:200]!r}")
        settings["workspace_path"] = path
    if flag(stated, "autoExecute", where):
        settings["approval_mode"] = "yolo"
    return settings


def choose_options(
    pending: Sequence[ToolCall], confirmations: Sequence[ToolCallConfirmation]
) -> tuple[ToolCallConfirmation, ...]:
    """Return answers with the options that their outcomes mean; answers to calls that are not waiting are unchanged.

    Raises:
        InvalidRequest: a question has no such option.
    """
    questions = {call.tool_call_id: call.confirmation_request for call in pending}
    return tuple(_chosen(questions.get(each.tool_call_id), each) for each in confirmations)


def _chosen(question: ConfirmationRequest | None, answer: ToolCallConfirmation) -> ToolCallConfirmation:
    if question is None or answer.selected_option_id not in _OUTCOMES:
        return answer
    outcome = AnswerOutcome(answer.selected_option_id)
    if outcome is AnswerOutcome.MODIFY_WITH_EDITOR:
        if answer.file_details is None:
            raise InvalidRequest(
                f"this server does not open an editor for tool call {answer.tool_call_id}: edit the content on your"
                f" side and send {AnswerOutcome.PROCEED_ONCE} with newContent. The question stays open."
            )
        outcome = AnswerOutcome.PROCEED_ONCE
    option = option_id_of(outcome, question.options)
    if option is None:
        offered = ", ".join(option.id for option in question.options)
        raise InvalidRequest(
            f"outcome {outcome} does not answer tool call {answer.tool_call_id}; expected one of {offered}."
            " The question stays open."
        )
    # gemini-cli-a2a-server reads newContent only for edits.
    details = answer.file_details if question.file_edit_details is not None else None
    return replace(answer, selected_option_id=option, file_details=details)


def _answer(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    outcome = text(data, "outcome", where)
    if outcome not in _OUTCOMES:
        expected = ", ".join(item.value for item in AnswerOutcome)
        raise InvalidParamsError(f"{where}.outcome", f"expected one of {expected}, received {outcome[:80]!r}")
    answer: dict[str, Any] = {"tool_call_id": text(data, "callId", where), "selected_option_id": outcome}
    # gemini-cli-a2a-server ignores an empty newContent.
    content = data.get("newContent")
    if content is not None and not isinstance(content, str):
        raise InvalidParamsError(f"{where}.newContent", "expected a string")
    if content:
        answer["file_details"] = {"new_content": content}
    return answer


def _stated(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the AgentSettings of the message, otherwise of the request, otherwise an empty mapping."""
    for holder, where in ((mapping(params, "message", "params"), "params.message"), (params, "params")):
        metadata = optional_mapping(holder, "metadata", where)
        if metadata is not None and metadata.get(KEY) is not None:
            return mapping(metadata, KEY, f"{where}.metadata")
    return {}


_GRAMMAR = CoderAgentGrammar()
