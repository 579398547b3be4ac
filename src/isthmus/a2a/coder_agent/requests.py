"""The dialect ``coderAgent``, requests: A2A 0.3 whose messages carry that server's AgentSettings and answers. Sans-I/O.

``metadata.coderAgent`` is ``{"kind": "agent-settings", "workspacePath", "autoExecute"?}`` and may be absent; an answer
is a data part ``{"callId", "outcome", "newContent"?}``. Outcomes name no option of the question: which one is meant
depends on what it offers (:func:`chosen_options`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, cast

from isthmus.a2a.coder_agent.vocabulary import KEY, AnswerOutcome, option_id_of
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.message_decoder import ReadPart, decode_send
from isthmus.a2a.protocol.operations import FollowTask, Operation
from isthmus.a2a.protocol.parameters import flag, mapping, optional_mapping, optional_text, text
from isthmus.a2a.v03.operations import SEND, STREAM, GrammarV03, decode_operation
from isthmus.a2a.wire import Call
from isthmus.client import InvalidRequest
from isthmus.development_tool import ConfirmationRequest, ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import JsonObject

DIALECT = "dialect"
"""The key in a session's stored AgentSettings that says how its client speaks; other agents do not know it."""

_OUTCOMES = frozenset(outcome.value for outcome in AnswerOutcome)


class CoderAgentGrammar(GrammarV03):
    """A2A 0.3, with answers in the dialect's own words; see :class:`isthmus.a2a.protocol.message_decoder.Grammar`."""

    def part(self, part: Mapping[str, Any], where: str) -> ReadPart:
        """Return a part; an answer becomes one of ours, with the outcome in the option's place."""
        data = part.get("data")
        if part.get("kind") == "data" and isinstance(data, Mapping) and ("callId" in data or "outcome" in data):
            return ReadPart(f"{where}.data", data=_answer(cast("Mapping[str, Any]", data), f"{where}.data"))
        return super().part(part, where)


def decode(call: Call) -> Operation:
    """Return the operation that a request asks for.

    Raises:
        RpcError: an unknown method, or parameters that do not fit; nothing has happened then.
    """
    if call.method not in (SEND, STREAM):
        operation = decode_operation(call)
        if isinstance(operation, FollowTask) and operation.after:
            # What is told of an event depends on those before it.
            return replace(operation, after=0, known=operation.after)
        return operation
    message = decode_send(call, _GRAMMAR, stream=call.method == STREAM)
    is_new = message.task_id is None
    return replace(
        message,
        # That server reads them for a new task alone.
        settings=settings_of(_stated(call.params)) if is_new else None,
        may_continue_completed=True,
        requires_settings=False,
        answers_in_text=False,
        options_are_outcomes=True,
    )


def settings_of(stated: Mapping[str, Any], where: str = f"params.message.metadata.{KEY}") -> JsonObject:
    """Our AgentSettings of those of the dialect; ``autoExecute`` is the approval mode yolo.

    Raises:
        InvalidParamsError: a value has another type, or the path is not absolute.
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


def chosen_options(
    pending: Sequence[ToolCall], confirmations: Sequence[ToolCallConfirmation]
) -> tuple[ToolCallConfirmation, ...]:
    """Answers with the options that their outcomes choose. One to a call that does not wait is left as it is.

    Raises:
        InvalidRequest: the question has no such option.
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
                f"this server opens no editor for tool call {answer.tool_call_id}: edit the file's content on your side"
                f" and send {AnswerOutcome.PROCEED_ONCE} with newContent. The question stays open."
            )
        outcome = AnswerOutcome.PROCEED_ONCE
    offered = [option.id for option in question.options]
    option = option_id_of(outcome, offered)
    if option is None:
        raise InvalidRequest(
            f"outcome {outcome} does not answer tool call {answer.tool_call_id}; expected one of {', '.join(offered)}."
            " The question stays open."
        )
    # That server reads newContent for edits alone.
    details = answer.file_details if question.file_edit_details is not None else None
    return replace(answer, selected_option_id=option, file_details=details)


def _answer(data: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    outcome = text(data, "outcome", where)
    if outcome not in _OUTCOMES:
        expected = ", ".join(item.value for item in AnswerOutcome)
        raise InvalidParamsError(f"{where}.outcome", f"expected one of {expected}, received {outcome[:80]!r}")
    answer: dict[str, Any] = {"tool_call_id": text(data, "callId", where), "selected_option_id": outcome}
    # That server takes an empty newContent for none.
    content = data.get("newContent")
    if content is not None and not isinstance(content, str):
        raise InvalidParamsError(f"{where}.newContent", "expected a string")
    if content:
        answer["file_details"] = {"new_content": content}
    return answer


def _stated(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the AgentSettings of the message, or of the request; empty when there are none."""
    for holder, where in ((mapping(params, "message", "params"), "params.message"), (params, "params")):
        metadata = optional_mapping(holder, "metadata", where)
        if metadata is not None and metadata.get(KEY) is not None:
            return mapping(metadata, KEY, f"{where}.metadata")
    return {}


_GRAMMAR = CoderAgentGrammar()
