"""The wire of A2A 1.0, for JSON-RPC and REST."""

from collections.abc import Sequence

from typing_extensions import override

from isthmus.a2a.protocol.errors import rpc_error
from isthmus.a2a.protocol.extension import URI, IncompatibleExtensionError
from isthmus.a2a.protocol.jsonrpc import EXTENSION_REQUIRED, VERSION_NOT_SUPPORTED
from isthmus.a2a.protocol.operations import Operation
from isthmus.a2a.protocol.task_encoder import StatusEncoder, encode_task
from isthmus.a2a.v1.encoder import ShapeV1, add_details, encode_push
from isthmus.a2a.v1.operations import SEND, STREAM, decode_operation
from isthmus.a2a.wire import Call, JsonDict, StreamEncoder, TaskPage, Wire
from isthmus.client import PushTarget, TaskSnapshot
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.rpc.messages import RpcError

_SHAPE = ShapeV1()


class WireV1(Wire):
    """A2A 1.0 over JSON-RPC and REST."""

    name = "1.0"

    def __init__(self, *, strict_extension: bool = False, progress_text: bool = False) -> None:
        self._strict_extension = strict_extension
        self._progress_text = progress_text

    @override
    def decode(self, call: Call) -> Operation:
        if call.version is not None and not is_version(call.version, "1.0"):
            message = f"{call.method} is a method of A2A 1.0, but A2A-Version is {call.version[:40]!r}"
            raise version_not_supported(message)
        if self._strict_extension and not call.activation.active and call.method in (SEND, STREAM):
            message = f"this server requires the development-tool extension: activate {URI} in A2A-Extensions"
            raise RpcError(EXTENSION_REQUIRED, message, {"uri": URI})
        return decode_operation(call)

    @override
    def task(
        self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None, *, is_polled: bool = False
    ) -> JsonDict:
        return encode_task(_SHAPE, snapshot, uri, history_length, is_polled=is_polled)

    @override
    def task_item(self, task: JsonDict) -> JsonDict:
        return {"task": task}

    @override
    def message_item(self, answer: AgentMessage, context_id: str) -> JsonDict:
        return {
            "message": _SHAPE.message("agent", answer.message_id, [_SHAPE.text(answer.text)], {"contextId": context_id})
        }

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
            _SHAPE,
            snapshot,
            uri,
            answered=answered,
            user_tier=user_tier,
            has_notes=has_notes,
            progress_text=self._progress_text,
        )

    @override
    def tasks(self, page: TaskPage, uri: str | None, history_length: int | None = None) -> JsonDict:
        tasks = [encode_task(_SHAPE, task, uri, history_length, has_answer=page.has_artifacts) for task in page.tasks]
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
        return add_details(rpc_error(error))


def version_not_supported(message: str) -> RpcError:
    """Return the error for a request whose stated version of A2A is not served or does not have its method."""
    return RpcError(VERSION_NOT_SUPPORTED, message, {"supported": "1.0, 0.3"})


def is_version(stated: str, version: str) -> bool:
    """Return whether a stated version is this one; its patch number is ignored."""
    return ".".join([*stated.strip().split("."), "0"][:2]) == version
