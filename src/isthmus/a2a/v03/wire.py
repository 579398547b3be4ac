"""A2A 0.3 as a :class:`~isthmus.a2a.wire.Wire`: joins its requests and its answers."""

from collections.abc import Sequence

from isthmus.a2a.protocol.errors import rpc_error
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.protocol.operations import Operation
from isthmus.a2a.protocol.task_encoder import Shape, StatusEncoder, encode_task
from isthmus.a2a.v03.encoder import ShapeV03, encode_push
from isthmus.a2a.v03.operations import SEND, STREAM, decode_operation
from isthmus.a2a.wire import Call, JsonDict, StreamEncoder, TaskPage
from isthmus.client import PushTarget, TaskSnapshot
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.rpc.messages import INVALID_REQUEST, RpcError


class WireV03:
    """See :class:`isthmus.a2a.wire.Wire`; each method is that of the port."""

    name = "0.3"
    shape: Shape = ShapeV03()

    def __init__(self, *, strict_extension: bool = False) -> None:
        self._strict_extension = strict_extension

    def decode(self, call: Call) -> Operation:
        """Params into an operation."""
        if self._strict_extension and not call.activation.active and call.method in (SEND, STREAM):
            message = f"this server requires the development-tool extension: activate {URI} in A2A-Extensions"
            raise RpcError(INVALID_REQUEST, message, {"uri": URI})
        return decode_operation(call)

    def task(self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None) -> JsonDict:
        """Return a Task of kind ``task``."""
        return encode_task(self.shape, snapshot, uri, history_length)

    def task_item(self, task: JsonDict) -> JsonDict:
        """Return the Task itself: its kind tells."""
        return task

    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        """Return a Message of the agent that belongs to no task."""
        content = [self.shape.text(answer.text)]
        return self.shape.message("agent", answer.message_id, content, {"contextId": context_id})

    def stream(
        self,
        snapshot: TaskSnapshot,
        uri: str | None,
        *,
        answered: frozenset[str] = frozenset(),
        user_tier: str | None = None,
    ) -> StreamEncoder:
        """Status-update and artifact-update events."""
        return StatusEncoder(self.shape, snapshot, uri, answered=answered, user_tier=user_tier)

    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        """Return the answer of our own method ``isthmus/tasks``."""
        return {"tasks": [encode_task(self.shape, task, uri, history_length) for task in page.tasks]}

    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        """Return a TaskPushNotificationConfig."""
        return encode_push(task_id, target)

    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        """Return a list of them."""
        return [encode_push(task_id, target) for target in targets]

    def nothing(self) -> object:
        """JSON null."""
        return None

    def error(self, error: IsthmusError) -> RpcError:
        """Codes -32001 to -32007, and those of JSON-RPC."""
        return rpc_error(error)
