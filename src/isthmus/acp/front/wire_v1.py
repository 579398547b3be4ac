"""Version 1 of the protocol at the front: its messages are the front's own. No I/O."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, TypeVar

from isthmus.acp.front.questions import ClientQuestion, CommandPermission
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.front.wire import FrontAbilities, FrontRequest, FrontUpdate, PromptAccepted, StateReport, read_params
from isthmus.acp.v1 import connection, sessions
from isthmus.acp.v1.client_requests import PermissionRequest
from isthmus.acp.v1.updates import AcpCallStatus, PlanUpdate, ToolCallState
from isthmus.encoding.codec import JsonObject, to_camel_json

REQUESTS: Mapping[str, type[FrontRequest]] = {
    kind.METHOD: kind
    for kind in (
        connection.AuthenticateRequest,
        connection.LogoutRequest,
        sessions.NewSessionRequest,
        sessions.LoadSessionRequest,
        sessions.ResumeSessionRequest,
        sessions.ForkSessionRequest,
        sessions.ListSessionsRequest,
        sessions.PromptRequest,
        sessions.SetModeRequest,
        sessions.SetConfigOptionRequest,
        sessions.CloseSessionRequest,
        sessions.DeleteSessionRequest,
    )
}
"""Requests after the first one, by their methods."""
StateT = TypeVar("StateT", bound=ToolCallState)


class FrontWireV1:
    """Version 1."""

    version: ClassVar[int] = connection.PROTOCOL_VERSION

    def read_initialize(self, params: JsonObject) -> connection.InitializeRequest:
        """Return the first request of a client."""
        return read_params(connection.InitializeRequest, params)

    def read(self, method: str, params: JsonObject) -> FrontRequest | None:
        """Return any other request; None if there is no such method."""
        kind = REQUESTS.get(method)
        return read_params(kind, params) if kind is not None else None

    def greeting(self, abilities: FrontAbilities) -> JsonObject:
        """Return the answer to ``initialize``."""
        present = connection.Present()
        delete = present if abilities.can_delete else None
        can_log_out = any(isinstance(method, connection.AgentAuth) for method in abilities.auth_methods)
        return to_camel_json(
            connection.InitializeResponse(
                self.version,
                connection.AgentCapabilities(
                    load_session=True,
                    prompt_capabilities=connection.PromptCapabilities(
                        image=abilities.takes_images, audio=False, embedded_context=True
                    ),
                    mcp_capabilities=connection.McpCapabilities(http=True, sse=True),
                    session_capabilities=connection.SessionCapabilities(
                        list=present,
                        resume=present,
                        close=present,
                        delete=delete,
                        additional_directories=present if abilities.takes_folders else None,
                        fork=present if abilities.can_fork else None,
                    ),
                    auth=connection.AgentAuthCapabilities(logout=present) if can_log_out else None,
                    meta={"isthmus": {"editedAnswers": True}},
                ),
                abilities.auth_methods,
                connection.Implementation("isthmus", abilities.version, "Isthmus"),
            )
        )

    def session(self, session_id: str | None, options: SessionOptions) -> JsonObject:
        """Return the answer to a request that begins or continues a session."""
        if session_id is not None:
            return to_camel_json(sessions.NewSessionResponse(session_id, options.modes, options.config_options))
        return to_camel_json(sessions.SessionStateResponse(options.modes, options.config_options))

    def acknowledgement(self, message_id: str) -> JsonObject | None:
        """Return None: a prompt is answered when its turn has ended."""

    def options(self, options: SessionOptions) -> JsonObject:
        """Return the answer to ``session/set_config_option``."""
        return to_camel_json(sessions.ConfigOptionsResponse(options.config_options))

    def updates(self, update: FrontUpdate) -> Iterator[JsonObject]:
        """Yield an update; a client has its own prompt already, and the response to it says how the turn ended."""
        match update:
            case StateReport() | PromptAccepted():
                return
            case PlanUpdate(entries):
                # This version has no entries that were given up.
                yield to_camel_json(PlanUpdate(tuple(entry for entry in entries if entry.status != "cancelled")))
            case ToolCallState():
                yield to_camel_json(call_state_v1(update))
            case _:
                yield to_camel_json(update)

    def question(self, question: ClientQuestion) -> JsonObject:
        """Return the parameters of the request that asks the user."""
        if isinstance(question, CommandPermission):
            question = PermissionRequest(question.session_id, question.tool_call, question.options)
        if isinstance(question, PermissionRequest):
            question = replace(question, tool_call=call_state_v1(question.tool_call))
        return to_camel_json(question)


def call_state_v1(state: StateT) -> StateT:
    """Return a tool call in the states of version 1, in which a cancelled call has failed."""
    return replace(state, status=AcpCallStatus.FAILED.value) if state.status == AcpCallStatus.CANCELLED else state
