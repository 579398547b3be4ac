"""Settings, answers and decoders of a client in each :class:`~isthmus.a2a.client.discovery.ClientDialect`. Sans-I/O."""

from collections.abc import Sequence
from typing import Any, assert_never

from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.coder_agent import vocabulary as coder_agent
from isthmus.a2a.coder_agent.decoder import CoderAgentDecoder
from isthmus.a2a.protocol.development_tool_decoder import DevelopmentToolDecoder
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.client import InvalidRequest
from isthmus.development_tool import ToolCallConfirmation
from isthmus.encoding.codec import JsonObject, to_json
from isthmus.events import MessagePart, TaskState


def decoder_of(dialect: ClientDialect, uri: str | None, state: TaskState | None = None) -> StreamDecoder:
    """Return a decoder for the streams of a server; ``state`` is the task's."""
    if dialect is ClientDialect.DEVELOPMENT_TOOL and uri is not None:
        return DevelopmentToolDecoder(uri, state)
    return CoderAgentDecoder(state, is_coder_agent=dialect is ClientDialect.CODER_AGENT)


def settings_metadata(dialect: ClientDialect, uri: str | None, settings: JsonObject | None) -> dict[str, Any] | None:
    """Return the metadata with the settings of a session; None if there are none, or the server takes none."""
    if settings is None:
        return None
    match dialect:
        case ClientDialect.DEVELOPMENT_TOOL:
            return {uri: dict(settings)} if uri is not None else None
        case ClientDialect.CODER_AGENT:
            workspace = settings.get("workspace_path") or settings.get("workspacePath")
            kind = coder_agent.EventKind.AGENT_SETTINGS.value
            ours: dict[str, Any] = {"kind": kind, "workspacePath": workspace}
            if settings.get("approval_mode") == "yolo":
                ours["autoExecute"] = True
            return {coder_agent.KEY: ours}
        case ClientDialect.PLAIN:
            return None
        case _:
            assert_never(dialect)


def answer_parts(dialect: ClientDialect, confirmations: Sequence[ToolCallConfirmation]) -> list[MessagePart]:
    """Return the message parts that answer questions.

    Raises:
        InvalidRequest: the server does not know an option, or does not take a changed edit.
    """
    if dialect is not ClientDialect.CODER_AGENT:
        return [MessagePart(data=to_json(confirmation)) for confirmation in confirmations]
    return [MessagePart(data=_outcome(confirmation)) for confirmation in confirmations]


def _outcome(confirmation: ToolCallConfirmation) -> dict[str, Any]:
    outcome = coder_agent.outcome_of(confirmation.selected_option_id)
    if outcome is None or outcome is coder_agent.AnswerOutcome.MODIFY_WITH_EDITOR:
        known = ", ".join(
            item for item in coder_agent.AnswerOutcome if item is not coder_agent.AnswerOutcome.MODIFY_WITH_EDITOR
        )
        raise InvalidRequest(f"this server has no option {confirmation.selected_option_id!r}; it has {known}")
    data: dict[str, Any] = {"callId": confirmation.tool_call_id, "outcome": outcome.value}
    if confirmation.file_details is not None:
        # Version 0.25.2 asks again without sending the question, and then does not know of one: the task would hang.
        raise InvalidRequest(
            "this server does not take a changed edit (the task would hang); allow or reject the edit as it is, and "
            "say what to change in a message"
        )
    return data
