"""The server's wire of the dialect ``coderAgent``, and the choice of its requests.

A client begins a task in the dialect with the key in its metadata; its later requests (``tasks/get``) need not have the
key. The dialect of a task is therefore stored in its settings (:mod:`isthmus.a2a.openings`). The routes beside JSON-RPC
are in :mod:`isthmus.a2a.coder_agent.routes`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.coder_agent.requests import decode
from isthmus.a2a.coder_agent.reservations import Reservations
from isthmus.a2a.coder_agent.vocabulary import KEY, methods_of
from isthmus.a2a.dialect import Dialect, DialectRoutes
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.operations import Operation, SendMessage
from isthmus.a2a.protocol.parameters import metadata_of
from isthmus.a2a.server.http.sse import OpenStreams
from isthmus.a2a.v03.operations import METHODS, SEND, STREAM
from isthmus.a2a.v03.wire import WireV03
from isthmus.a2a.wire import Call, JsonDict, StreamEncoder, TaskPage, Wire
from isthmus.client import TaskNotResumable, TaskSnapshot
from isthmus.errors import IsthmusError
from isthmus.rpc.messages import INVALID_REQUEST, RpcError


class CoderAgentWire(WireV03):
    """The dialect ``coderAgent``, a variant of A2A 0.3."""

    name = KEY

    def __init__(self, reservations: Reservations) -> None:
        super().__init__()
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
    def task(
        self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None, *, is_polled: bool = False
    ) -> JsonDict:
        from isthmus.a2a.coder_agent.encoder import encode_task

        self._reservations.fulfil(snapshot.task_id)
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

        self._reservations.fulfil(snapshot.task_id)
        return CoderAgentEncoder(snapshot, answered=answered, user_tier=user_tier)

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
        self._reservations = Reservations()
        self.wire: Wire = CoderAgentWire(self._reservations)

    @override
    def claims(self, call: Call) -> bool:
        if call.method not in METHODS:
            return False
        task_id = _task_of(call)
        if any(KEY in metadata for metadata in metadata_of(call.params)):
            return True
        if call.activation.active or task_id is None:
            return False
        if self._reservations.get(task_id, call.user) is not None:
            return True
        return call.opening is not None and call.opening.dialect == KEY

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
