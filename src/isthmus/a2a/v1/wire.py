"""The wire of A2A 1.0, for JSON-RPC and REST."""

from collections.abc import Sequence

from typing_extensions import override

from isthmus.a2a.protocol.extension import URI, IncompatibleExtensionError
from isthmus.a2a.protocol.jsonrpc import EXTENSION_REQUIRED, VERSION_NOT_SUPPORTED
from isthmus.a2a.protocol.operations import Operation
from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.protocol.task_encoder import encode_task
from isthmus.a2a.v1.encoder import ShapeV1, add_details, encode_push
from isthmus.a2a.v1.operations import SEND, STREAM, decode_operation
from isthmus.a2a.version_wire import VersionWire
from isthmus.a2a.wire import Call, JsonDict, TaskPage
from isthmus.client import PushTarget
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.rpc.messages import RpcError


class WireV1(VersionWire):
    """A2A 1.0 over JSON-RPC and REST."""

    name = "1.0"
    shape: Shape = ShapeV1()
    sends = (SEND, STREAM)
    extension_required = EXTENSION_REQUIRED

    @override
    def decode(self, call: Call) -> Operation:
        if call.version is not None and not is_version(call.version, "1.0"):
            message = f"{call.method} is a method of A2A 1.0, but A2A-Version is {call.version[:40]!r}"
            raise version_not_supported(message)
        self.check_extension(call)
        return decode_operation(call)

    @override
    def task_item(self, task: JsonDict) -> JsonDict:
        return {"task": task}

    @override
    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        return {"message": self.message(answer, context_id)}

    @override
    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        shape, has_answer = self.shape, page.has_artifacts
        tasks = [encode_task(shape, task, uri, history_length, has_answer=has_answer) for task in page.tasks]
        return {"tasks": tasks, "nextPageToken": page.next_token, "pageSize": page.size, "totalSize": page.total}

    @override
    def push(self, task_id: str, target: PushTarget) -> JsonDict:
        return encode_push(task_id, target)

    @override
    def pushes(self, task_id: str, targets: Sequence[PushTarget]) -> object:
        return {"configs": [encode_push(task_id, target) for target in targets], "nextPageToken": ""}

    @override
    def nothing(self) -> object:
        return {}

    @override
    def error(self, error: IsthmusError) -> RpcError:
        if isinstance(error, IncompatibleExtensionError):
            return add_details(RpcError(EXTENSION_REQUIRED, str(error), {"uri": URI}))
        return add_details(super().error(error))


def version_not_supported(message: str) -> RpcError:
    """Return the error for a request whose stated version of A2A is not served or does not have its method."""
    return RpcError(VERSION_NOT_SUPPORTED, message, {"supported": "1.0, 0.3"})


def is_version(stated: str, version: str) -> bool:
    """Return whether a stated version is this one; its patch number is ignored."""
    return ".".join([*stated.strip().split("."), "0"][:2]) == version
