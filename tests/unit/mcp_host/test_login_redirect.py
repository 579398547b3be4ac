import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from isthmus.mcp_host.oauth.redirect import MAXIMUM_CONNECTIONS, RedirectReceiver, receiving
from isthmus.tools.port.failure import ToolFailure
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def ask(redirect_uri: str, line: bytes, host: str = "127.0.0.1") -> bytes:
    """Return the response of the receiver to a request with this first line."""
    reader, writer = await asyncio.open_connection(host, urlsplit(redirect_uri).port)
    writer.write(line + b"\r\nHost: localhost\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 30)
    writer.close()
    return answer


async def test_only_the_redirect_of_this_very_login_counts() -> None:
    async with receiving(None) as receiver:
        uri = receiver.uri
        assert b" 400 " in await ask(uri, b"GET /oauth/callback?code=x&state=None HTTP/1.1")
        receiver.state = "right"
        for line in (
            b"GET /oauth/callback?code=stolen HTTP/1.1",
            b"GET /oauth/callback?code=stolen&state=wrong HTTP/1.1",
            b"POST /oauth/callback?code=stolen&state=right HTTP/1.1",
            b"GET /other?code=stolen&state=right HTTP/1.1",
            b"GET //[?code=stolen&state=right HTTP/1.1",
            b"GET",
            b"",
        ):
            assert (await ask(uri, line)).split(b" ")[1] in (b"400", b"404")
            assert not receiver.answer.done()
        assert b" 200 " in await ask(uri, b"GET /oauth/callback?code=c&state=right HTTP/1.1")
        assert (await receiver.answer)["code"] == "c"
        await ask(uri, b"GET /oauth/callback?code=later&state=right HTTP/1.1")
        assert receiver.answer.result()["code"] == "c"


async def test_what_a_server_says_of_a_refusal_is_text_on_the_page() -> None:
    async with receiving(None) as receiver:
        uri = receiver.uri
        receiver.state = "s"
        line = b"GET /oauth/callback?state=s&error=no&error_description=%3Cscript%3Ealert(1)%3C/script%3E HTTP/1.1"
        page = await ask(uri, line)
        assert b"<script>" not in page
        assert b"&lt;script&gt;" in page


async def test_the_redirect_comes_to_this_machine_alone() -> None:
    for uri in ("https://localhost:1/x", "http://evil.example/x", "http://0.0.0.0:7000/x", "http://localhost@evil/x"):
        with pytest.raises(ToolFailure, match="expected http://localhost"):
            async with receiving(uri):
                pass
    assert RedirectReceiver("http://localhost:1/x").state is None


async def test_a_port_used_by_another_program_at_one_localhost_address_is_taken() -> None:
    with socket.socket(socket.AF_INET6) as other:
        other.bind(("::1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ToolFailure, match="is taken"):
            async with receiving(f"http://localhost:{port}/oauth/callback"):
                pass
        async with receiving(f"http://127.0.0.1:{port}/oauth/callback"):
            pass  # a configured address excludes all others
    async with receiving(None) as first, receiving(None) as second:
        assert first.uri != second.uri
        for receiver in (first, second):
            for host in ("127.0.0.1", "::1"):
                assert b" 404 " in await ask(receiver.uri, b"GET / HTTP/1.1", host)


async def test_connections_of_others_are_not_kept_without_end() -> None:
    async with receiving(None) as receiver:
        receiver.state = "s"
        port = urlsplit(receiver.uri).port
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(MAXIMUM_CONNECTIONS + 3)]
        for reader, _ in held[MAXIMUM_CONNECTIONS:]:
            assert await asyncio.wait_for(reader.read(), 60) == b""
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        line = b"GET /oauth/callback?code=c&state=s HTTP/1.1"
        await eventually_async(lambda: _is_taken(receiver.uri, line), what="the redirect is taken")
        assert receiver.answer.result()["code"] == "c"


async def _is_taken(uri: str, line: bytes) -> bool:
    try:
        return b" 200 " in await ask(uri, line)
    except ConnectionError:
        return False
