"""The wires of A2A 0.3: over JSON-RPC, and over HTTP and JSON."""

from collections.abc import Sequence

from typing_extensions import override

from isthmus.a2a.protocol.operations import Operation
from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.protocol.task_encoder import encode_task
from isthmus.a2a.v03.encoder import ShapeV03, encode_push
from isthmus.a2a.v03.operations import SEND, STREAM, decode_operation
from isthmus.a2a.v03.proto_json import ProtoShapeV03, encode_named_push
from isthmus.a2a.version_wire import VersionWire
from isthmus.a2a.wire import Call, JsonDict, TaskPage
from isthmus.client import PushTarget
from isthmus.events import AgentMessage
from isthmus.rpc.messages import INVALID_REQUEST


class WireV03(VersionWire):
    """A2A 0.3 over JSON-RPC."""

    name = "0.3"
    shape: Shape = ShapeV03()
    sends = (SEND, STREAM)
    extension_required = INVALID_REQUEST

    @override
    def decode(self, call: Call) -> Operation:
        self.check_extension(call)
        return decode_operation(call)

    @override
    def task_item(self, task: JsonDict) -> JsonDict:
        return task

    @override
    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        return self.message(answer, context_id)

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
        return {"message": self.message(answer, context_id)}

    @override
    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        return encode_named_push(task_id, target)

    @override
    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        return {"configs": [encode_named_push(task_id, target) for target in targets], "nextPageToken": ""}

    @override
    def nothing(self) -> object:
        return {}
