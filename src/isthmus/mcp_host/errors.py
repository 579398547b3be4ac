"""What a connection to a server raises, without the SDK; :mod:`isthmus.mcp_host.failures` puts it into words."""

from isthmus.errors import IsthmusError


class ServerLostError(IsthmusError):
    """The server is not connected, or ended in the middle of a call."""


class ConnectFailedError(IsthmusError):
    """A way to connect that did not work; the text is for the person."""

    def __init__(self, message: str, *, is_about_handshake: bool = False, may_be_other_way: bool = False) -> None:
        super().__init__(message)
        self.is_about_handshake = is_about_handshake
        self.may_be_other_way = may_be_other_way


class NeedsLoginError(IsthmusError):
    """The server wants a login first."""


class AbandonedError(IsthmusError):
    """An attempt to connect that nobody wants any more."""
