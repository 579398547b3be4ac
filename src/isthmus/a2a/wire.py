"""The port Wire: one protocol version or dialect of A2A, as the server speaks it. Sans-I/O.

A wire reads a request into an Operation and writes its result. :mod:`isthmus.a2a.wires` chooses the wire of a request;
:mod:`isthmus.a2a.server.framing` sends the result as JSON-RPC or REST.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from isthmus.a2a.protocol.extension import NOT_ACTIVE, Activation
from isthmus.a2a.protocol.operations import Operation, PushService
from isthmus.client import AgentClient, Delivery, HistoryMessage, PushTarget, TaskSnapshot
from isthmus.development_tool import ToolCall
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.record import record
from isthmus.rpc.messages import RpcError

JsonDict: TypeAlias = dict[str, Any]


@record
class Opening:
    """The form in which a client opened a task.

    ``extension`` is the URI of the development-tool extension in the client's spelling. It is empty for a client of A2A
    without it, and None for a task that was not opened over A2A. ``dialect`` is the name of a dialect, or empty.
    ``is_polled``: a client without the extension sent the message and did not wait, so it reads the answer in the Task.
    """

    extension: str | None = None
    dialect: str = ""
    is_polled: bool = False


@record
class Call:
    """A request before its wire reads it."""

    method: str
    params: Mapping[str, Any]
    activation: Activation = NOT_ACTIVE
    after: int | None = None
    """Id of the last event that the client has seen (``Last-Event-ID``)."""
    wants_stream: bool = False
    """Whether the client accepts an event stream."""
    version: str | None = None
    """Value of the header ``A2A-Version``; None without it."""
    has_push: bool = True
    """Whether the server sends push notifications."""
    user: str = ""
    """Name of the caller; empty for the local user."""
    needs_workspace: bool = True
    """Whether the first message of a session that uses the extension must name a folder."""
    opening: Opening | None = None
    """Opening of the task or session that the request is about; None if there is none, or the request states its own
    form."""


CheckQuota: TypeAlias = Callable[[], Awaitable[None]]
"""Function that raises LimitReached if a user may begin no more work for now."""


@record
class Caller:
    """The user behind a request: the agent as this user sees it, and the user's push notifications.

    ``user_tier`` goes into the metadata of events. ``name`` is empty for the local user.
    """

    agent: AgentClient
    push: PushService | None = None
    user_tier: str | None = None
    name: str = ""
    quota: CheckQuota | None = None

    async def check_quota(self) -> None:
        """Check the user's quota, if there is one.

        Raises:
            LimitReached: the user may begin no more work for now.
        """
        if self.quota is not None:
            await self.quota()


@record
class TaskPage:
    """A page of at most ``size`` of ``total`` tasks. ``next_token`` requests the next page; the last page has none.

    ``has_artifacts``: the client asks for the artifacts, too.
    """

    tasks: Sequence[TaskSnapshot]
    next_token: str = ""
    total: int = 0
    size: int = 0
    has_artifacts: bool = True


class StreamEncoder(Protocol):
    """The events of one stream, in order."""

    def encode(
        self,
        delivery: Delivery,
        *,
        final: bool = False,
        pending: Sequence[ToolCall] = (),
        answer: HistoryMessage | None = None,
    ) -> Sequence[JsonDict]:
        """Return the stream items for a delivery; none for an event that clients do not receive.

        It must be called with every delivery of the stream. ``final``: the stream ends with this delivery. The calls in
        ``pending`` then wait for the user, and ``answer`` is the agent's last message, if the task is completed or
        waits. The last item carries the number of the event, so that a client that resumes after it misses nothing.
        """
        ...


class Wire(Protocol):
    """One protocol version or dialect. ``uri`` is the extension as the client spells it; None: it is not active."""

    name: str
    """Name that is stored with push targets, whose notifications it writes: ``0.3``, ``1.0`` or ``coderAgent``."""

    def decode(self, call: Call) -> Operation:
        """Return the operation that a request asks for.

        Raises:
            RpcError: the method is unknown, or a parameter is invalid; nothing has been done.
        """
        ...

    def task(
        self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None, *, is_polled: bool = False
    ) -> JsonDict:
        """Return a Task with at most ``history_length`` messages.

        ``is_polled``: once the answer is an artifact, the history has the user's messages alone.
        """
        ...

    def task_item(self, task: JsonDict) -> JsonDict:
        """Return a Task as the item of a stream, and as the answer to a message."""
        ...

    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        """Return a Message, as the answer to a message."""
        ...

    def stream(
        self,
        snapshot: TaskSnapshot,
        uri: str | None,
        *,
        answered: frozenset[str] = frozenset(),
        user_tier: str | None = None,
        has_notes: bool = False,
    ) -> StreamEncoder:
        """Return an encoder of the events after ``snapshot``; ``answered`` are the calls that the request answered.

        ``has_notes``: events of the extension also say which tokens were used, and which files saved, before them.
        """
        ...

    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        """Return a page of tasks."""
        ...

    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        """Return a push target."""
        ...

    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        """Return all push targets of a task."""
        ...

    def nothing(self) -> object:
        """Return the answer of an operation without a result."""
        ...

    def error(self, error: IsthmusError) -> RpcError:
        """Return the error that reports an expected failure to a client."""
        ...
