"""The choice of a transport to an endpoint, with or without a handshake: each is tried until one works."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from isthmus.mcp_host.config.server_config import Endpoint, HttpEndpoint, HttpKind
from isthmus.mcp_host.connection.errors import ConnectFailedError
from isthmus.record import record


@record
class TransportChoice:
    """A transport to an endpoint. ``is_modern``: without a handshake, for a server that does not support one.

    ``discovered`` is the earlier description of this server, as JSON of MCP, so that it need not be asked again.
    ``asks_first``: the server is asked for its revisions before the handshake, because they are not known yet.
    """

    kind: HttpKind = HttpKind.STREAMABLE
    is_modern: bool = False
    discovered: Mapping[str, Any] | None = None
    asks_first: bool = False


class TransportProbe:
    """The choices for an endpoint, in the order in which they are tried."""

    def __init__(self, endpoint: Endpoint) -> None:
        kinds = (HttpKind.STREAMABLE,)
        if isinstance(endpoint, HttpEndpoint):
            kinds = (HttpKind.STREAMABLE, HttpKind.SSE) if endpoint.kind is HttpKind.PROBE else (endpoint.kind,)
        is_asked = isinstance(endpoint, HttpEndpoint)
        self._usual = tuple(TransportChoice(kind, asks_first=is_asked and kind is not HttpKind.SSE) for kind in kinds)
        self._known: TransportChoice | None = None
        self._is_proven = False

    def remember(self, choice: TransportChoice | None) -> None:
        """Try the choice of an earlier start first, then the others, since the server may have changed."""
        self._known = choice

    def worked(self, choice: TransportChoice, discovered: Mapping[str, Any] | None) -> TransportChoice:
        """Use only this choice from now on, and return it in the form in which it is tried again.

        ``discovered`` is the server's description of itself; a server that sent one is used without a handshake.
        """
        self._known, self._is_proven = TransportChoice(choice.kind, is_modern=discovered is not None), True
        return self._known

    async def first_working(self, connect: Callable[[TransportChoice], Awaitable[bool]]) -> bool:
        """Return the result of ``connect`` for the first choice that works.

        Raises:
            ConnectFailedError: none worked; the reason is the one of the first.
        """
        known, is_proven = self._known, self._is_proven
        choices = list(self._usual)
        if known is not None:
            others = () if is_proven else (choice for choice in choices if replace(choice, asks_first=False) != known)
            choices = [known, *others]
        first: ConnectFailedError | None = None
        fallback: TransportChoice | None = None
        begun_again = False
        while choices:
            choice = choices.pop(0)
            try:
                return await connect(choice)
            except ConnectFailedError as error:
                if error.is_about_question:
                    choices.insert(0, replace(choice, asks_first=False))  # as if it had not been asked
                    continue
                if error.is_about_session and not begun_again:
                    begun_again = True
                    choices.insert(0, choice)  # as when it was started again in between
                    continue
                first = first or error
                # The failure of the fallback is not conclusive: the refusal of the handshake decides how to go on.
                decisive = first if choice is fallback else error
                if error.is_about_handshake and not choice.is_modern and choice.kind is not HttpKind.SSE:
                    fallback = TransportChoice(choice.kind, is_modern=True, discovered=error.discovered)
                    choices.insert(0, fallback)
                elif decisive.is_late or not (decisive.may_be_other_transport or (choice is known and not is_proven)):
                    raise decisive from None
        raise first or RuntimeError("no transport was tried")
