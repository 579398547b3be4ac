"""Errors of a connection to a server. Does not import the SDK."""

from collections.abc import Callable, Mapping
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.tools.port.failure import ToolFailure


class ServerLostError(IsthmusError):
    """The server is not connected, or ended during a call. ``was_sent``: the call was sent; its effect is unknown."""

    def __init__(self, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent

    def failure(self, server: str) -> ToolFailure:
        """Return the failure of a call.

        Remote users do not see the server's output: the server serves all users, and may repeat the input of another.
        """
        public_text = f"the MCP server {server!r} is not connected; the user who runs this agent can see the reason"
        if self.was_sent:
            public_text = (
                f"the MCP server {server!r} ended before it answered; whether the call had an effect is not known, and "
                "it was not repeated"
            )
        return ToolFailure(str(self), "mcp_server_lost", public_text)


class SessionForgottenError(ServerLostError):
    """The server no longer knows the session of a request, or could not be reached; the request had no effect."""


class ToolGoneError(IsthmusError):
    """The server no longer has a tool, or has another tool under its name; nothing was called."""


class ConnectFailedError(IsthmusError):
    """A choice of transport did not work; the message is for the user.

    ``is_about_session``: the server did not know the session that it had begun. ``is_about_question``: the connection
    broke at the question before the handshake. ``discovered``: the server's answer to that question, if it then
    refused the handshake.
    """

    def __init__(
        self,
        message: str,
        *,
        is_about_handshake: bool = False,
        may_be_other_transport: bool = False,
        is_late: bool = False,
        is_about_session: bool = False,
        is_about_question: bool = False,
        discovered: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.is_about_session = is_about_session
        self.is_about_question = is_about_question
        self.discovered = discovered
        self.is_late = is_late
        self.is_about_handshake = is_about_handshake
        self.may_be_other_transport = may_be_other_transport


class NeedsLoginError(IsthmusError):
    """The server requires a login."""

    def failure(self, server: str, what: str, hidden: Callable[[str], str]) -> ToolFailure:
        """Return the failure of `what` (e.g. "add of the MCP server 'a' was not called").

        `hidden` removes secrets from a text. Only the local user, who can log in, sees how; remote users do not.
        """
        public_text = f"the MCP server {server!r} wants a login of the user who runs this agent"
        return ToolFailure(hidden(f"{what}: {self}"), "mcp_needs_login", public_text)


class AbandonedError(IsthmusError):
    """An attempt to connect was abandoned because it is no longer wanted."""


class OAuthError(IsthmusError):
    """A login or its renewal failed; the message is for the user and contains no secret."""
