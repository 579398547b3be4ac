"""One end of a JSON-RPC 2.0 connection on a byte stream: bytes in, messages out, and back. No I/O.

Both ends may send requests. A malformed frame does not affect the next one. Where a message ends is the business of a
:class:`MessageFraming`: :mod:`isthmus.rpc.lsp` and :mod:`isthmus.rpc.json_lines` have one each.
"""

from collections.abc import Iterator
from typing import Final, Protocol

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode
from isthmus.errors import IsthmusError
from isthmus.rpc import messages as rpc

MAXIMUM_BRACKETS: Final = 1_000_000
"""Maximum number of opening brackets in a message, also inside of texts: a list costs many times its one byte."""


class BrokenPeerError(IsthmusError):
    """The peer does not speak JSON-RPC; nothing more is read from it."""


class MessageFraming(Protocol):
    """The frames of a byte stream, one message each."""

    @property
    def rules(self) -> rpc.Rules:
        """Messages that the protocol accepts."""
        ...

    @property
    def maximum_bytes(self) -> int:
        """Maximum size of a message in bytes."""
        ...

    @property
    def maximum_malformed(self) -> int | None:
        """Maximum number of frames that are not messages; None for no maximum."""
        ...

    def feed(self, data: bytes) -> Iterator[bytes | rpc.ParseError]:
        """Yield the bodies of the messages that ``data`` completes, in order, and an error for each malformed frame."""
        ...

    def frame(self, message: JsonObject) -> bytes:
        """Return a message as it is sent."""
        ...


class JsonRpcPeer:
    """One end of a connection: the bytes received so far, and the ids of our requests."""

    def __init__(self, framing: MessageFraming) -> None:
        self._framing = framing
        self._malformed = 0
        self._last_id = 0

    def receive(self, data: bytes) -> Iterator[rpc.Message]:
        """Yield the messages that ``data`` completes, in order; read to the end before the next call.

        Raises:
            BrokenPeerError: too many frames were not messages.
        """
        most = self._framing.maximum_malformed
        for frame in self._framing.feed(data):
            message = frame if isinstance(frame, rpc.ParseError) else self._message(frame)
            yield message
            if isinstance(message, rpc.ParseError):
                self._malformed += 1
                if most is not None and self._malformed >= most:
                    raise BrokenPeerError(f"the peer does not speak JSON-RPC; its last mistake: {message.text}")

    def request(self, method: str, params: JsonObject | None) -> tuple[int, bytes]:
        """Return the id of a new request, and its frame.

        Raises:
            RpcError: it is larger than a message may be.
        """
        self._last_id += 1
        framed = self._framing.frame(rpc.request(self._last_id, method, params))
        if len(framed) > self._framing.maximum_bytes:
            most = self._framing.maximum_bytes
            raise rpc.RpcError(0, f"{method}: a message of {len(framed)} bytes is more than {most}")
        return self._last_id, framed

    def frame(self, message: JsonObject) -> bytes:
        """Return a message as it is sent."""
        return self._framing.frame(message)

    def _message(self, body: bytes) -> rpc.Message:
        if body.count(b"[") + body.count(b"{") > MAXIMUM_BRACKETS:
            problem = f"expected at most {MAXIMUM_BRACKETS} opening brackets, in texts or outside"
            return rpc.ParseError(None, rpc.PARSE_ERROR, problem)
        try:
            return rpc.message_of(decode(body, mends_text=True), self._framing.rules)
        except JsonError as problem:
            return rpc.ParseError(None, rpc.PARSE_ERROR, str(problem))
