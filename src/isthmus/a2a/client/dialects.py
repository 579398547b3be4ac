"""How a client speaks of sessions, questions and answers: by the extension, in the dialect coderAgent, or not at all.

Each function looks at the :class:`~isthmus.a2a.client.discovery.ClientDialect` of a server. Sans-I/O.
"""

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


def decoder_of(manner: ClientDialect, uri: str | None, state: TaskState | None = None) -> StreamDecoder:
    """What reads the streams of such a server."""
    if manner is ClientDialect.DEVELOPMENT_TOOL and uri is not None:
        return DevelopmentToolDecoder(uri, state)
    return CoderAgentDecoder(state, is_coder_agent=manner is ClientDialect.CODER_AGENT)


def settings_metadata(manner: ClientDialect, uri: str | None, settings: JsonObject | None) -> dict[str, Any] | None:
    """Return the metadata that gives a server the settings of a session."""
    if settings is None:
        return None
    match manner:
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
            assert_never(manner)


def answer_parts(manner: ClientDialect, confirmations: Sequence[ToolCallConfirmation]) -> list[MessagePart]:
    """Return the parts that answer questions.

    Raises:
        InvalidRequest: the server has no word for an answer.
    """
    if manner is not ClientDialect.CODER_AGENT:
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
        # It puts the question again, tells nobody, and then knows of no question (seen in 0.25.2): nothing could go on.
        raise InvalidRequest(
            "this server does not take a changed edit (it would wait for ever); allow or reject the edit as it is, and "
            "say what to change"
        )
    return data
