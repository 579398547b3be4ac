"""The draft of version 2 at the front: its requests as the front's, and what the front says as its messages.

It keeps no state: sessions, turns and questions are the front's, and the same for every version.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import ClassVar

from isthmus.acp.front.questions import ClientQuestion
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.front.updates import replaced_message
from isthmus.acp.front.wire import (
    FrontAbilities,
    FrontRequest,
    FrontUpdate,
    PromptAccepted,
    StateReport,
    read_params,
)
from isthmus.acp.v1 import connection as v1
from isthmus.acp.v1 import sessions
from isthmus.acp.v1.client_requests import PermissionRequest
from isthmus.acp.v1.updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CommandsUpdate,
    CompactionUpdate,
    ConfigOptionsUpdate,
    ModeUpdate,
    PlanUpdate,
    SessionInfoUpdate,
    ToolCallChanged,
    ToolCallStarted,
    UnknownUpdate,
    UsageUpdate,
    UserMessageChunk,
)
from isthmus.acp.v2 import connection
from isthmus.acp.v2.sessions import (
    AgentMessageUpdate,
    AvailableCommandV2,
    CommandsUpdateV2,
    ConfigOptionsUpdateV2,
    NewSessionRequestV2,
    PlanItems,
    PlanUpdateV2,
    PromptAcknowledgement,
    ReplayFromStart,
    ResumeSessionRequestV2,
    SelectOptionV2,
    SessionResponse,
    StateUpdate,
    TextInput,
    UserMessageUpdate,
)
from isthmus.acp.v2.tool_calls import call_update, permission
from isthmus.encoding.codec import JsonObject, to_camel_json
from isthmus.rpc.messages import INVALID_PARAMS, RpcError

_SAME: Mapping[str, type[FrontRequest]] = {
    kind.METHOD: kind
    for kind in (
        sessions.ListSessionsRequest,
        sessions.PromptRequest,
        sessions.SetConfigOptionRequest,
        sessions.CloseSessionRequest,
        sessions.DeleteSessionRequest,
    )
}
"""Requests that version 1 has as well; members that are new in version 2 repeat what the value itself says."""

PLAN_ID = "todos"
"""Id of the only plan of a session."""


class FrontWireV2:
    """Version 2."""

    version: ClassVar[int] = 2

    def __init__(self, new_id: Callable[[], str] = lambda: str(uuid.uuid4())) -> None:
        self._new_id = new_id

    def read_initialize(self, params: JsonObject) -> v1.InitializeRequest:
        """Return the first request of a client."""
        request = read_params(connection.InitializeRequestV2, params)
        given = request.capabilities or connection.ClientCapabilitiesV2()
        can_login = given.auth is not None and given.auth.terminal is not None
        capabilities = v1.ClientCapabilities(auth=v1.AuthCapabilities(can_login), elicitation=given.elicitation)
        return v1.InitializeRequest(request.protocol_version, capabilities, request.info)

    def read(self, method: str, params: JsonObject) -> FrontRequest | None:
        """Return any other request; None if there is no such method."""
        match method:
            case connection.LoginRequest.METHOD:
                return v1.AuthenticateRequest(read_params(connection.LoginRequest, params).method_id)
            case connection.LogoutRequestV2.METHOD:
                return v1.LogoutRequest()
            case NewSessionRequestV2.METHOD:
                new = read_params(NewSessionRequestV2, params)
                return sessions.NewSessionRequest(new.cwd, new.mcp_servers, new.additional_directories)
            case ResumeSessionRequestV2.METHOD:
                return _continued(read_params(ResumeSessionRequestV2, params))
            case _:
                kind = _SAME.get(method)
                return read_params(kind, params) if kind is not None else None

    def greeting(self, abilities: FrontAbilities) -> JsonObject:
        """Return the answer to ``initialize``."""
        present = v1.Present()
        session = connection.SessionCapabilitiesV2(
            connection.PromptCapabilitiesV2(present if abilities.takes_images else None, embedded_context=present),
            connection.McpCapabilitiesV2(stdio=present, http=present),
            present if abilities.can_delete else None,
            present if abilities.takes_folders else None,
        )
        return to_camel_json(
            connection.InitializeResponseV2(
                self.version,
                v1.Implementation("isthmus", abilities.version, "Isthmus"),
                connection.AgentCapabilitiesV2(session, {"isthmus": {"editedAnswers": True}}),
                tuple(_auth_method(method) for method in abilities.auth_methods),
            )
        )

    def session(self, session_id: str | None, options: SessionOptions) -> JsonObject:
        """Return the answer to a request that begins or continues a session."""
        return to_camel_json(SessionResponse(session_id, _options(options.config_options)))

    def acknowledgement(self, message_id: str) -> JsonObject | None:
        """Return the answer to a prompt whose turn has begun."""
        return to_camel_json(PromptAcknowledgement(message_id))

    def options(self, options: SessionOptions) -> JsonObject:
        """Return the answer to ``session/set_config_option``."""
        return to_camel_json(SessionResponse(None, _options(options.config_options)))

    def updates(self, update: FrontUpdate) -> Iterator[JsonObject]:
        """Yield an update; every message has an id here."""
        match update:
            case StateReport(state, reason, error):
                yield to_camel_json(StateUpdate(state.value, reason, error))
            case PromptAccepted(message_id, content):
                yield to_camel_json(UserMessageUpdate(message_id, content))
            case AgentMessageChunk():
                if (void := replaced_message(update)) is not None:
                    yield to_camel_json(AgentMessageUpdate(void, ()))
                    update = replace(update, meta=None)
                yield self._with_id(update)
            case UserMessageChunk() | AgentThoughtChunk():
                yield self._with_id(update)
            case ToolCallStarted() | ToolCallChanged():
                yield to_camel_json(call_update(update))
            case CommandsUpdate(commands):
                listed = (
                    AvailableCommandV2(item.name, item.description, TextInput(item.input.hint) if item.input else None)
                    for item in commands
                )
                yield to_camel_json(CommandsUpdateV2(tuple(listed)))
            case ConfigOptionsUpdate(options):
                yield to_camel_json(ConfigOptionsUpdateV2(_options(options)))
            case SessionInfoUpdate() | UsageUpdate() | CompactionUpdate():
                yield to_camel_json(update)
            case PlanUpdate(entries):
                yield to_camel_json(PlanUpdateV2(PlanItems(PLAN_ID, entries)))
            case ModeUpdate() | UnknownUpdate():
                pass  # a mode is an option here; the front sends no others

    def question(self, question: ClientQuestion) -> JsonObject:
        """Return the parameters of the request that asks the user; for forms and pages they are as in version 1."""
        return to_camel_json(permission(question) if isinstance(question, PermissionRequest) else question)

    def _with_id(self, chunk: AgentMessageChunk | UserMessageChunk | AgentThoughtChunk) -> JsonObject:
        return to_camel_json(chunk if chunk.message_id else replace(chunk, message_id=self._new_id()))


def _continued(request: ResumeSessionRequestV2) -> FrontRequest:
    about = (request.session_id, request.cwd, request.mcp_servers, request.additional_directories)
    match request.replay_from:
        case None:
            return sessions.ResumeSessionRequest(*about)
        case ReplayFromStart():
            return sessions.LoadSessionRequest(*about)
        case unknown:
            raise RpcError(INVALID_PARAMS, f"replayFrom.type: expected start, received {unknown.type[:100]!r}")


def _options(options: tuple[sessions.ConfigOption, ...]) -> tuple[SelectOptionV2, ...]:
    return tuple(
        SelectOptionV2(item.id, item.name, item.current_value, item.options, item.description, item.category)
        for item in options
        if isinstance(item, sessions.SelectOption)
    )


def _auth_method(method: v1.TerminalAuth | v1.AgentAuth) -> connection.TerminalAuthV2 | connection.AgentAuthV2:
    if isinstance(method, v1.AgentAuth):
        return connection.AgentAuthV2(method.id, method.name, method.description)
    env = tuple(sessions.NamedValue(name, value) for name, value in (method.env or {}).items())
    return connection.TerminalAuthV2(method.id, method.name, method.description, method.args, env or None)
