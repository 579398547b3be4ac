"""The server's wire of the dialect ``coderAgent``, and the choice of its requests.

A client begins a task in the dialect with the key in its metadata; its later requests (``tasks/get``) need not have the
key. The dialect of a task is therefore stored in its settings, and remembered here. The routes beside JSON-RPC are in
:mod:`isthmus.a2a.coder_agent.routes`.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.coder_agent.requests import DIALECT, decode
from isthmus.a2a.coder_agent.reservations import Reservations
from isthmus.a2a.coder_agent.vocabulary import KEY, methods_of
from isthmus.a2a.dialect import Dialect, DialectRoutes
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.operations import Operation, SendMessage
from isthmus.a2a.protocol.parameters import metadata_of
from isthmus.a2a.server.sse import OpenStreams
from isthmus.a2a.service import close
from isthmus.a2a.v03.operations import METHODS, SEND, STREAM
from isthmus.a2a.v03.wire import WireV03
from isthmus.a2a.wire import Call, JsonDict, StreamEncoder, TaskPage, Wire
from isthmus.client import AgentClient, TaskError, TaskNotResumable, TaskSnapshot
from isthmus.errors import IsthmusError
from isthmus.events import Command, Prompt
from isthmus.rpc.messages import INVALID_REQUEST, RpcError

REMEMBERED_TASKS = 10_000


class CoderAgentTasks:
    """Memory of tasks and whether they belong to this dialect; the least recently used task is forgotten."""

    def __init__(self, limit: int = REMEMBERED_TASKS) -> None:
        self._limit = limit
        self._tasks: OrderedDict[str, bool] = OrderedDict()

    def get(self, task_id: str) -> bool | None:
        """Return whether a task belongs to the dialect; None if that is unknown."""
        if task_id in self._tasks:
            self._tasks.move_to_end(task_id)
        return self._tasks.get(task_id)

    def set(self, task_id: str, *, is_ours: bool) -> None:
        """Remember whether a task belongs to the dialect."""
        self._tasks[task_id] = is_ours
        self._tasks.move_to_end(task_id)
        if len(self._tasks) > self._limit:
            self._tasks.popitem(last=False)


class CoderAgentWire(WireV03):
    """The dialect ``coderAgent``, a variant of A2A 0.3."""

    name = KEY

    def __init__(self, memory: CoderAgentTasks, reservations: Reservations) -> None:
        super().__init__()
        self._memory = memory
        self._reservations = reservations

    @override
    def decode(self, call: Call) -> Operation:
        operation = decode(call)
        if not isinstance(operation, SendMessage) or operation.task_id is None:
            return operation
        # The task stays reserved until it exists, so that a refused first message can be repeated.
        reserved = self._reservations.get(operation.task_id, call.user)
        if reserved is None:
            return operation
        return replace(
            operation,
            task_id=None,
            new_task_id=reserved.task_id,
            context_id=operation.context_id or reserved.context_id,
            settings=reserved.settings,
        )

    @override
    def task(self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None) -> JsonDict:
        from isthmus.a2a.coder_agent.encoder import encode_task

        self._seen(snapshot)
        return encode_task(snapshot, history_length)

    @override
    def stream(
        self,
        snapshot: TaskSnapshot,
        uri: str | None,
        *,
        answered: frozenset[str] = frozenset(),
        user_tier: str | None = None,
        has_notes: bool = False,
    ) -> StreamEncoder:
        from isthmus.a2a.coder_agent.encoder import CoderAgentEncoder

        self._seen(snapshot)
        return CoderAgentEncoder(snapshot, answered=answered, user_tier=user_tier)

    def _seen(self, snapshot: TaskSnapshot) -> None:
        self._memory.set(snapshot.task_id, is_ours=True)
        self._reservations.fulfil(snapshot.task_id)

    @override
    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        from isthmus.a2a.coder_agent.encoder import encode_task

        return {"tasks": [encode_task(task, history_length) for task in page.tasks]}

    @override
    def error(self, error: IsthmusError) -> RpcError:
        if isinstance(error, TaskNotResumable):  # as gemini-cli-a2a-server answers a message to an ended task
            return RpcError(INVALID_REQUEST, str(error))
        return super().error(error)


class CoderAgentDialect(Dialect):
    """The dialect ``coderAgent``. Clients that activate the development-tool extension do not speak it."""

    def __init__(self) -> None:
        self._memory = CoderAgentTasks()
        self._reservations = Reservations()
        self.wire: Wire = CoderAgentWire(self._memory, self._reservations)

    @override
    async def claims(self, call: Call, agent: AgentClient) -> bool:
        if call.method not in METHODS:
            return False
        task_id = _task_of(call)
        if any(KEY in metadata for metadata in metadata_of(call.params)):
            return True
        if call.activation.active or task_id is None:
            return False
        if self._reservations.get(task_id, call.user) is not None:
            return True
        known = self._memory.get(task_id)
        if known is None and (known := await _was_opened_so(agent, task_id)) is not None:
            self._memory.set(task_id, is_ours=known)
        return known is True

    @override
    def methods_of(self, path: str) -> tuple[str, ...]:
        return methods_of(path)

    @override
    def routes(self, options: ServerOptions, streams: OpenStreams) -> DialectRoutes:
        from isthmus.a2a.coder_agent.routes import CoderAgentRoutes  # few clients use them

        return CoderAgentRoutes(options, streams, self._reservations)


def _task_of(call: Call) -> str | None:
    if call.method in (SEND, STREAM):
        message = call.params.get("message")
        found = cast("Mapping[str, Any]", message).get("taskId") if isinstance(message, Mapping) else None
    else:
        found = call.params.get("id") or call.params.get("taskId")
    return found if isinstance(found, str) and found else None


async def _was_opened_so(agent: AgentClient, task_id: str) -> bool | None:
    """Return whether the settings in the first event of a task name this dialect; None if there is no such task."""
    try:
        turn = await agent.follow(task_id, 0)
        try:
            first = await anext(aiter(turn.deliveries), None) if turn.snapshot.seq else None
        finally:
            await close(turn.deliveries)
    except TaskError:
        return None
    if first is None or not isinstance(first.event, (Prompt, Command)):
        return False
    settings = first.event.settings
    return settings is not None and settings.get(DIALECT) == KEY
