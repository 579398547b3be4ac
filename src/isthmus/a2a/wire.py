"""The Wire port: one protocol version, or dialect, of A2A as the server speaks it. Sans-I/O.

A wire reads a request into an Operation and writes what came of it. Which wire a request is for is
:mod:`isthmus.a2a.wires`; whether the answer goes out as JSON-RPC or REST is :mod:`isthmus.a2a.server.framing`.
Deliberately not here: the client's side, and sockets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from isthmus.a2a.protocol.extension import NOT_ACTIVE, Activation
from isthmus.a2a.protocol.operations import Operation, PushService
from isthmus.client import AgentClient, Delivery, PushTarget, TaskSnapshot
from isthmus.development_tool import ToolCall
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.rpc.messages import RpcError

JsonDict: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A request before its wire reads it.

    ``after`` is the id of the last event that the client has seen (``Last-Event-ID``). ``wants_stream``: the client
    accepts an event stream. ``version`` is what the header ``A2A-Version`` says, None without it. ``has_push``: the
    server sends push notifications. ``needs_workspace``: the first message of a session in the extension has to name a
    folder. ``user`` is the name of who calls; empty for the one user of a server.
    """

    method: str
    params: Mapping[str, Any]
    activation: Activation = NOT_ACTIVE
    after: int | None = None
    wants_stream: bool = False
    version: str | None = None
    has_push: bool = True
    user: str = ""
    needs_workspace: bool = True


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a request is met: the agent with what they may see of it, and where their news are sent.

    ``user_tier`` goes into the metadata of events. ``name`` is the user's; empty for the one user of a server.
    """

    agent: AgentClient
    push: PushService | None = None
    user_tier: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some of ``total`` tasks; ``next_token`` leads to the next page, and is empty on the last."""

    tasks: Sequence[TaskSnapshot]
    next_token: str = ""
    total: int = 0
    size: int = 0


class StreamEncoder(Protocol):
    """The events of one stream, in order."""

    def encode(
        self, delivery: Delivery, *, final: bool = False, pending: Sequence[ToolCall] = ()
    ) -> Sequence[JsonDict]:
        """Return the items that tell a client of a delivery; none for what it is not told.

        Every delivery of the stream comes here. ``final`` says that the stream ends with it; ``pending`` are the calls
        that wait for the user then. The number of the event goes with the last item, so that a client which resumes
        after it has missed none.
        """
        ...


class Wire(Protocol):
    """One protocol version or dialect. ``uri`` is the client's spelling of the extension; None: it is not active."""

    @property
    def name(self) -> str:
        """What a push target keeps to be written to in the same way: ``0.3``, ``1.0``, ``coderAgent``."""
        ...

    def decode(self, call: Call) -> Operation:
        """What a request asks for.

        Raises:
            RpcError: an unknown method, or parameters that do not fit; nothing has happened then.
        """
        ...

    def task(self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None) -> JsonDict:
        """Return a Task with at most ``history_length`` messages."""
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
    ) -> StreamEncoder:
        """An encoder for what comes after ``snapshot``; ``answered`` are the calls that the same request answered."""
        ...

    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        """Return a page of tasks."""
        ...

    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        """Return a push target."""
        ...

    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        """All push targets of a task."""
        ...

    def nothing(self) -> object:
        """Return the answer that says no more than that it is done."""
        ...

    def error(self, error: IsthmusError) -> RpcError:
        """Return the error that tells a client of an expected failure."""
        ...


class Dialect(Protocol):
    """A way of speaking an A2A version that some clients have; asked for each request before the version's own wire.

    It stands among the dialects of :class:`isthmus.a2a.wires.Wires`. What it must remember of a client (the tasks that
    it opened) it keeps itself: its wire sees each of them in ``decode`` and ``stream``.
    """

    @property
    def wire(self) -> Wire:
        """How these clients are spoken to."""
        ...

    async def claims(self, call: Call, agent: AgentClient) -> bool:
        """Return whether such a client sent the request.

        Called for each request, so it looks at the metadata and the task id; ``agent`` is the caller's, for a task that
        is not remembered.
        """
        ...
