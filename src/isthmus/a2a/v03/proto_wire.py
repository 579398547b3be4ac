"""A2A 0.3 over HTTP and JSON as a :class:`~isthmus.a2a.wire.Wire`: requests as in JSON-RPC, answers as ProtoJSON."""

from collections.abc import Sequence

from isthmus.a2a.protocol.task_encoder import Shape
from isthmus.a2a.v03.proto_json import ProtoShapeV03, encode_named_push
from isthmus.a2a.v03.wire import WireV03
from isthmus.a2a.wire import JsonDict
from isthmus.client import PushTarget
from isthmus.events import AgentMessage


class ProtoWireV03(WireV03):
    """See :class:`isthmus.a2a.wire.Wire`. Its name is that of 0.3: news of tasks are written as that writes them."""

    shape: Shape = ProtoShapeV03()

    def task_item(self, task: JsonDict) -> JsonDict:
        """Return a StreamResponse, or a SendMessageResponse."""
        return {"task": task}

    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        """Return a StreamResponse, or a SendMessageResponse."""
        return {"message": super().message_item(answer, context_id)}

    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        """Return a TaskPushNotificationConfig."""
        return encode_named_push(task_id, target)

    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        """Return a ListTaskPushNotificationConfigResponse."""
        return {"configs": [encode_named_push(task_id, target) for target in targets], "nextPageToken": ""}

    def nothing(self) -> object:
        """Return an empty object."""
        return {}
