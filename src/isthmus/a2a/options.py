"""How an A2A server serves: what its owner may choose."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Sizes are bytes, times seconds.

    ``hosts`` are the names, besides the loopback ones, by which the server is reached (the bound host). ``public_url``
    stands in the card instead of what the client called. ``strict_extension`` refuses clients without the extension.
    ``blocking_limit`` ends the wait of a message/send, which then answers with the task as it stands; ``body_deadline``
    the wait for a request; ``keep_alive`` is the silence after which a stream gets a comment.
    """

    token: str
    hosts: tuple[str, ...] = ()
    public_url: str | None = None
    strict_extension: bool = False
    body_limit: int = 20_000_000
    body_deadline: float = 30
    blocking_limit: float = 600
    keep_alive: float = 15
