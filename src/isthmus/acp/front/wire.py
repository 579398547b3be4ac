"""The boundary between the front and a version of the protocol: what both exchange, and the port of a version. No I/O.

The front speaks in the messages of version 1, and in the few values here that version 1 cannot express. Each version
reads requests into them and writes them as its own messages; it keeps no sessions and runs no turns.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Protocol, TypeAlias, TypeVar

from isthmus.acp.front.questions import ClientQuestion
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.v1 import connection, sessions
from isthmus.acp.v1.content import ContentBlock
from isthmus.acp.v1.updates import SessionUpdate
from isthmus.encoding.codec import JsonObject, camel, from_json
from isthmus.errors import DecodeError
from isthmus.record import record

RequestT = TypeVar("RequestT")


class TurnState(StrEnum):
    """State of the work in a session."""

    RUNNING = "running"
    REQUIRES_ACTION = "requires_action"
    IDLE = "idle"


@record
class TurnError:
    """Failure of a turn, as the error of a response."""

    code: int
    message: str


@record
class StateReport:
    """The work in a session entered a state; ``stop_reason`` is set when a turn has ended."""

    state: TurnState
    stop_reason: str | None = None
    error: TurnError | None = None


@record
class PromptAccepted:
    """A prompt of this client has become the message ``message_id`` of the session."""

    message_id: str
    content: tuple[ContentBlock, ...]


TurnReport: TypeAlias = StateReport | PromptAccepted
FrontUpdate: TypeAlias = SessionUpdate | TurnReport
FrontRequest: TypeAlias = (
    connection.AuthenticateRequest
    | connection.LogoutRequest
    | sessions.NewSessionRequest
    | sessions.LoadSessionRequest
    | sessions.ResumeSessionRequest
    | sessions.ForkSessionRequest
    | sessions.ListSessionsRequest
    | sessions.PromptRequest
    | sessions.SetModeRequest
    | sessions.SetConfigOptionRequest
    | sessions.CloseSessionRequest
    | sessions.DeleteSessionRequest
)


@record
class FrontAbilities:
    """Abilities of a front, as its clients are told. ``version`` is the program's."""

    version: str
    can_delete: bool
    takes_images: bool
    auth_methods: tuple[connection.TerminalAuth | connection.AgentAuth, ...]
    can_fork: bool = False
    takes_folders: bool = True


class FrontWire(Protocol):
    """A version of the protocol. It has no state, so that one object serves every connection."""

    version: ClassVar[int]
    """Number of the version, by which it is chosen."""

    def read_initialize(self, params: JsonObject) -> connection.InitializeRequest:
        """Return the first request of a client.

        Raises:
            DecodeError: a member does not fit.
        """
        ...

    def read(self, method: str, params: JsonObject) -> FrontRequest | None:
        """Return any other request; None if this version has no such method.

        Raises:
            DecodeError: a member does not fit.
            RpcError: the request asks for what is not supported.
        """
        ...

    def greeting(self, abilities: FrontAbilities) -> JsonObject:
        """Return the answer to ``initialize``."""
        ...

    def session(self, session_id: str | None, options: SessionOptions) -> JsonObject:
        """Return the answer to a request that begins a session (``session_id``) or continues one."""
        ...

    def acknowledgement(self, message_id: str) -> JsonObject | None:
        """Return the answer to a prompt whose turn has begun, if state reports tell the rest.

        None: the prompt is answered when its turn has ended.
        """
        ...

    def options(self, options: SessionOptions) -> JsonObject:
        """Return the answer to ``session/set_config_option``."""
        ...

    def updates(self, update: FrontUpdate) -> Iterator[JsonObject]:
        """Yield an update of a session in this version's form: one, several or none."""
        ...

    def question(self, question: ClientQuestion) -> JsonObject:
        """Return the parameters of the request that asks the user."""
        ...


def read_params(kind: type[RequestT], params: JsonObject) -> RequestT:
    """Return the parameters of a request or notification.

    Raises:
        DecodeError: a member does not fit. It has its name on the wire, since the client's author knows that one.
    """
    try:
        return from_json(kind, params, "params")
    except DecodeError as error:
        raise DecodeError(camel(error.path), error.expected, error.received) from error
