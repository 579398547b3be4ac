"""Errors of a connection to a server, without the SDK."""

from collections.abc import Callable, Mapping
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.tools.failure import ToolFailure


class ServerLostError(IsthmusError):
    """The server is not connected, or ended in the middle of a call: then ``was_sent``, and its effect is not known."""

    def __init__(self, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent

    def failure(self, server: str) -> ToolFailure:
        """Return the failure of a call.

        Other users of an agent do not see the server's output: it serves all of them, and may repeat one's input.
        """
        told = f"the MCP server {server!r} is not connected; the user who runs this agent sees why"
        if self.was_sent:
            told = (
                f"the MCP server {server!r} ended before it answered; whether the call had an effect is not known, and "
                "it was not repeated"
            )
        return ToolFailure(str(self), "mcp_server_lost", told)


class SessionForgottenError(ServerLostError):
    """The server refused a request since it does not know the session any more; the request had no effect."""


class ToolGoneError(IsthmusError):
    """The server does not have a tool any more, or has another one under its name; nothing was called."""


class ConnectFailedError(IsthmusError):
    """A way to connect that did not work; the text is for the user.

    ``is_about_question``: the connection broke over what is asked before the handshake. ``discovered``: what the server
    answered there, before it refused the handshake.
    """

    def __init__(
        self,
        message: str,
        *,
        is_about_handshake: bool = False,
        may_be_other_way: bool = False,
        is_late: bool = False,
        is_about_question: bool = False,
        discovered: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.is_about_question = is_about_question
        self.discovered = discovered
        self.is_late = is_late
        self.is_about_handshake = is_about_handshake
        self.may_be_other_way = may_be_other_way


class NeedsLoginError(IsthmusError):
    """The server wants a login first."""

    def failure(self, server: str, what: str, hidden: Callable[[str], str]) -> ToolFailure:
        """Return the failure of `what` (e.g. "add of the MCP server 'a' was not called").

        `hidden` removes secrets from a text. The place to log in is only for the user who can, not for other users.
        """
        told = f"the MCP server {server!r} wants a login of the user who runs this agent"
        return ToolFailure(hidden(f"{what}: {self}"), "mcp_needs_login", told)


class AbandonedError(IsthmusError):
    """An attempt to connect that nobody wants any more."""


class OAuthError(IsthmusError):
    """A login, or the renewal of one, does not work; the text is for the user and holds no secret."""
