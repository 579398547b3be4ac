"""The login of an agent at the front: by which methods a client can authenticate, and whether it has logged out."""

from collections.abc import Sequence

from isthmus.acp.front.turn import AUTH_REQUIRED
from isthmus.acp.v1 import connection
from isthmus.rpc.messages import INVALID_PARAMS, INVALID_REQUEST, RpcError


class FrontLogin:
    """The login on one connection."""

    def __init__(self, methods: Sequence[connection.TerminalAuth | connection.AgentAuth]) -> None:
        self._methods = tuple(methods)
        self._own = [method.id for method in methods if isinstance(method, connection.AgentAuth)]
        """Ids of the methods by which the agent logs in itself."""
        self._is_logged_out = False

    def methods_for(
        self, capabilities: connection.ClientCapabilities
    ) -> tuple[connection.TerminalAuth | connection.AgentAuth, ...]:
        """Return the methods that a client can carry out."""
        can_login = capabilities.auth is not None and capabilities.auth.terminal
        return tuple(item for item in self._methods if can_login or isinstance(item, connection.AgentAuth))

    def log_out(self) -> None:
        """Have no session begun or continued until the client has authenticated again.

        Raises:
            RpcError: there is no login.
        """
        if not self._own:
            raise RpcError(INVALID_REQUEST, "this agent has no login to forget: expected no logout, as initialize says")
        self._is_logged_out = True

    def authenticate(self, request: connection.AuthenticateRequest) -> None:
        """Log in.

        Raises:
            RpcError: there is no such method.
        """
        if request.method_id not in self._own:
            expected = f"one of {', '.join(self._own)}" if self._own else "none: there is nothing to log in to"
            raise RpcError(INVALID_PARAMS, f"methodId: expected {expected}, received {request.method_id[:100]!r}")
        self._is_logged_out = False

    def require(self) -> None:
        """Check that the client has not logged out.

        Raises:
            RpcError: it has.
        """
        if self._is_logged_out:
            raise RpcError(AUTH_REQUIRED, f"logged out: authenticate first, by {', '.join(self._own)}")
