"""A version of A2A as a wire: tasks and streams in the version's own shape, and the option to require the extension."""

from typing_extensions import override

from isthmus.a2a.protocol.errors import rpc_error
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.protocol.shape import Shape
from isthmus.a2a.protocol.task_encoder import StatusEncoder, encode_task
from isthmus.a2a.wire import Call, JsonDict, StreamEncoder, Wire
from isthmus.client import TaskSnapshot
from isthmus.errors import IsthmusError
from isthmus.events import AgentMessage
from isthmus.rpc.messages import RpcError


class VersionWire(Wire):
    """A wire whose objects have one ``shape``.

    ``strict_extension``: messages of clients that have not activated the extension are refused. ``progress_text``:
    clients without the extension also receive what the agent says before its answer.
    """

    shape: Shape
    sends: tuple[str, ...]
    """Methods that send a message."""
    extension_required: int
    """Error code of a message without the extension."""

    def __init__(self, *, strict_extension: bool = False, progress_text: bool = False) -> None:
        self._strict_extension = strict_extension
        self._progress_text = progress_text

    def check_extension(self, call: Call) -> None:
        """Check that the extension is active, if this server requires it of messages.

        Raises:
            RpcError: it is not.
        """
        if self._strict_extension and not call.activation.active and call.method in self.sends:
            message = f"this server requires the development-tool extension: activate {URI} in A2A-Extensions"
            raise RpcError(self.extension_required, message, {"uri": URI})

    def message(self, answer: AgentMessage, context_id: str) -> JsonDict:
        """Return a Message."""
        content = [self.shape.text(answer.text)]
        return self.shape.message("agent", answer.message_id, content, {"contextId": context_id})

    @override
    def task(
        self, snapshot: TaskSnapshot, uri: str | None, history_length: int | None = None, *, is_polled: bool = False
    ) -> JsonDict:
        return encode_task(self.shape, snapshot, uri, history_length, is_polled=is_polled)

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
    def error(self, error: IsthmusError) -> RpcError:
        return rpc_error(error)
