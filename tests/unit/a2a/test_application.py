"""The ASGI application in other ASGI servers: lifespan, WebSockets, clients that disconnect at once."""

from collections.abc import Sequence
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.application import Application, application
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


def app() -> Application:
    return application(MemoryAgent(), ServerOptions("token"))


async def sent_by(served: Application, scope: dict[str, Any], received: Sequence[dict[str, Any]]) -> list[str]:
    """Return the types of the messages that the application sends, given those it receives."""
    incoming = iter(received)
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        return next(incoming)

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await served(scope, receive, send)
    return sent


async def test_a_lifespan_ends_the_streams() -> None:
    served = app()
    received = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]
    assert await sent_by(served, {"type": "lifespan"}, received) == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    assert served.open_streams == 0


async def test_a_websocket_is_closed() -> None:
    assert await sent_by(app(), {"type": "websocket", "path": "/"}, []) == ["websocket.close"]


async def test_a_client_that_leaves_before_its_body_has_come_gets_nothing() -> None:
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer token")]
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    assert await sent_by(app(), scope, [{"type": "http.disconnect"}]) == []


async def test_the_health_says_that_the_server_ends() -> None:
    served = app()
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/healthz",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }
    statuses: list[int] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await served(dict(scope), receive, send)
    served.close_streams()
    await served(dict(scope), receive, send)
    assert statuses == [200, 503]
