"""The client's decoders over JSON results, combined as the client combines them."""

from collections.abc import Sequence
from types import ModuleType

from isthmus.a2a.client.dialects import decoder_of
from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.protocol.snapshots import snapshot_of
from isthmus.a2a.v03 import decoder as v03_decoder
from isthmus.client import Delivery, TaskSnapshot
from isthmus.events import TaskState


class Decoding:
    """Decoders for the results of one task's streams; ``wire`` is the decoder module of a protocol version."""

    def __init__(
        self,
        uri: str | None,
        state: TaskState | None = None,
        *,
        manner: ClientDialect | None = None,
        wire: ModuleType = v03_decoder,
    ) -> None:
        self._wire = wire
        chosen = manner or (ClientDialect.PLAIN if uri is None else ClientDialect.DEVELOPMENT_TOOL)
        self.decoder = decoder_of(chosen, uri, state)

    def decode(self, result: object, seq: int | None = None) -> Sequence[Delivery]:
        """Return the deliveries of one result."""
        return self.decoder.decode(self._wire.decode_item(result), seq)

    @property
    def is_final(self) -> bool:
        """Whether the last item was marked as the final one."""
        return self.decoder.is_final

    @property
    def at_rest(self) -> bool:
        """Whether the work has ended, or waits for a user's answer."""
        return self.decoder.at_rest


def decoded_snapshot(
    result: object, uri: str | None, seq: int | None = None, wire: ModuleType = v03_decoder
) -> TaskSnapshot:
    """Return the snapshot that a Task describes."""
    return snapshot_of(wire.decode_task(result), uri, seq)
