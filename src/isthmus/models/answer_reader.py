"""The port of a provider's reader, which folds the events of one streamed answer into a message."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from isthmus.encoding.codec import JsonObject
from isthmus.models.endpoint.failure import HttpFailure
from isthmus.models.port.base import Finish, Message, ProviderState, StreamItem, ToolRequest, Usage
from isthmus.models.port.received import as_count, unused_id
from isthmus.record import record


@record
class StreamedAnswer:
    """The answer at the end of a stream. ``ended`` is False if the protocol's end mark is missing."""

    message: Message
    usage: Usage
    finish: Finish
    raw_finish: str | None
    ended: bool = True


class AnswerReader(ABC):
    """Reader that folds the events of one answer into a message, without I/O.

    Data that only the server understands is kept as state of ``origin``, and is returned only to it. ``used_ids`` are
    the ids of the earlier tool calls of the conversation.
    """

    def __init__(self, origin: str, used_ids: Collection[str]) -> None:
        self._origin = origin
        self._used = set(used_ids)
        self._usage: JsonObject = {}
        self._reason = ""

    @abstractmethod
    def feed(self, event: object) -> Sequence[StreamItem] | HttpFailure:
        """Read one event, which may be any JSON, and return its visible items.

        Unknown data is kept or left out. If the event is an error of the server, return an :class:`HttpFailure`.
        """

    @abstractmethod
    def answer(self) -> StreamedAnswer:
        """Return the answer received so far."""

    def _request(
        self, given_id: str, name: str, arguments: JsonObject, kept: JsonObject, invalid: str | None
    ) -> ToolRequest:
        """Return a tool call with an unused id; the server's own id is kept in its state if it differs."""
        identity = self._unused_id(given_id)
        if given_id and given_id != identity:
            kept = {**kept, "id": given_id}
        return ToolRequest(identity, name, arguments, self._state(kept), invalid)

    def _unused_id(self, given: str) -> str:
        identity = unused_id(given, self._used)
        self._used.add(identity)
        return identity

    def _state(self, kept: JsonObject) -> ProviderState | None:
        return ProviderState(self._origin, kept) if kept else None

    def _count(self, name: str) -> int:
        return as_count(self._usage.get(name))
