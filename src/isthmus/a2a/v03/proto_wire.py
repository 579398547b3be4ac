"""The wire of A2A 0.3 over HTTP and JSON: requests as in JSON-RPC, answers as ProtoJSON."""

from collections.abc import Sequence

from typing_extensions import override

from isthmus.a2a.protocol.task_encoder import Shape
from isthmus.a2a.v03.proto_json import ProtoShapeV03, encode_named_push
from isthmus.a2a.v03.wire import WireV03
from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import AgentMessage


class ProtoWireV03(WireV03):
    """A2A 0.3 over HTTP and JSON. It shares the name of 0.3, so push notifications are written as in JSON-RPC."""

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
