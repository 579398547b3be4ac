"""How asking the other end of a connection fails, whatever the wire is."""

from isthmus.errors import IsthmusError


class RpcError(IsthmusError):
    """The peer answered a request with an error; the text is the peer's. ``code`` is 0 where the wire has none."""

    def __init__(self, text: str, code: int = 0) -> None:
        self.code = code
        super().__init__(text)


class RpcTimeoutError(IsthmusError):
    """No answer came within the deadline; the request may still be carried out later."""


class RpcClosedError(IsthmusError):
    """The connection is lost or was closed."""
