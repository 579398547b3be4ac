"""The wires of A2A 0.3: over JSON-RPC, and over HTTP and JSON."""

from collections.abc import Sequence

from typing_extensions import override

from isthmus.a2a.protocol.errors import rpc_error
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.protocol.operations import Operation
from isthmus.a2a.protocol.task_encoder import Shape, StatusEncoder, encode_task
from isthmus.a2a.v03.encoder import ShapeV03, encode_push
from isthmus.a2a.v03.operations import SEND, STREAM, decode_operation
from isthmus.a2a.v03.proto_json import ProtoShapeV03, encode_named_push
from isthmus.a2a.wire import Call, JsonDict, StreamEncoder, TaskPage, Wire
from isthmus.client import PushTarget, TaskSnapshot
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.rpc.messages import INVALID_REQUEST, RpcError


class WireV03(Wire):
    """A2A 0.3 over JSON-RPC."""

    name = "0.3"
    shape: Shape = ShapeV03()

    def __init__(self, *, strict_extension: bool = False, progress_text: bool = False) -> None:
        self._strict_extension = strict_extension
        self._progress_text = progress_text

    @override
    def decode(self, call: Call) -> Operation:
        if self._strict_extension and not call.activation.active and call.method in (SEND, STREAM):
            message = f"this server requires the development-tool extension: activate {URI} in A2A-Extensions"
            raise RpcError(INVALID_REQUEST, message, {"uri": URI})
        return decode_operation(call)

    @override
    def task(
        self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None, *, is_polled: bool = False
    ) -> JsonDict:
        return encode_task(self.shape, snapshot, uri, history_length, is_polled=is_polled)

    @override
    def task_item(self, task: JsonDict) -> JsonDict:
        return task

    @override
    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        content = [self.shape.text(answer.text)]
        return self.shape.message("agent", answer.message_id, content, {"contextId": context_id})

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
        return StatusEncoder(
            self.shape,
            snapshot,
            uri,
            answered=answered,
            user_tier=user_tier,
            has_notes=has_notes,
            progress_text=self._progress_text,
        )

    @override
    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        return {"tasks": [encode_task(self.shape, task, uri, history_length) for task in page.tasks]}

    @override
    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        return encode_push(task_id, target)

    @override
    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        return [encode_push(task_id, target) for target in targets]

    @override
    def nothing(self) -> object:
        return None

    @override
    def error(self, error: IsthmusError) -> RpcError:
        return rpc_error(error)


class ProtoWireV03(WireV03):
    """A2A 0.3 over HTTP and JSON: requests as in JSON-RPC, answers as ProtoJSON.

    It shares the name of 0.3, so push notifications are written as in JSON-RPC.
    """

    shape: Shape = ProtoShapeV03()

    @override
    def task_item(self, task: JsonDict) -> JsonDict:
        return {"task": task}

    @override
    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        return {"message": super().message_item(answer, context_id)}

    @override
    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        return encode_named_push(task_id, target)

    @override
    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        return {"configs": [encode_named_push(task_id, target) for target in targets], "nextPageToken": ""}

    @override
    def nothing(self) -> object:
        return {}
