"""Both ends of a connection: requests, cancellation and the end, over lines in memory."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from isthmus.acp.connection import AcpConnection, ConnectionLimits
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError, IsthmusError
from isthmus.rpc.messages import RpcError
from isthmus.rpc.pending import RpcClosedError, RpcTimeoutError
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@dataclass
class Peer:
    """The other end: it sends lines and sees what comes back. Our end answers requests as their methods say."""

    chunks: "asyncio.Queue[bytes]" = field(default_factory=asyncio.Queue[bytes])
    sent: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    notified: list[tuple[str, JsonObject]] = field(default_factory=list[tuple[str, JsonObject]])
    cancelled: list[str] = field(default_factory=list[str])
    ended: list[str] = field(default_factory=list[str])
    release: asyncio.Event = field(default_factory=asyncio.Event)
    cancels_itself: bool = False
    is_gone: bool = False

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        match method:
            case "wait":
                try:
                    await self.release.wait()
                finally:
                    self.ended.append(method)
            case "refuse":
                raise RpcError(-5, "no", {"why": "because"})
            case "refuse without a code":
                raise RpcError(0, "no")
            case "misread":
                raise DecodeError("params.x", "a string", 5)
            case "fail":
                raise IsthmusError("the disk is full")
            case "crash":
                raise ZeroDivisionError("secret")
            case _:
                pass
        return {"method": method, **params}

    def notification(self, method: str, params: JsonObject) -> None:
        self.notified.append((method, params))

    def cancel(self, method: str, params: JsonObject) -> bool:
        self.cancelled.append(method)
        if self.cancels_itself:
            self.release.set()
        return self.cancels_itself

    async def write(self, line: bytes) -> None:
        if self.is_gone:
            raise BrokenPipeError("gone")
        assert line.endswith(b"\n")
        self.sent.append(json.loads(line))

    async def tell(self, *messages: dict[str, Any]) -> None:
        """Send messages in one chunk."""
        await self.chunks.put(b"".join(json.dumps({"jsonrpc": "2.0", **item}).encode() + b"\n" for item in messages))

    async def answers(self, count: int) -> list[dict[str, Any]]:
        """Return what our end has sent as soon as there are so many messages."""
        await eventually_async(lambda: len(self.sent) >= count, what=f"{count} messages")
        return self.sent

    def error(self, number: object) -> tuple[int, str]:
        """Return the error with which a request was answered; it has one answer."""
        (answer,) = [message for message in self.sent if message.get("id") == number]
        return answer["error"]["code"], answer["error"]["message"]


@asynccontextmanager
async def connected(
    limits: ConnectionLimits = ConnectionLimits(), peer: Peer | None = None
) -> AsyncGenerator[tuple[AcpConnection, Peer]]:
    peer = peer or Peer()
    connection = AcpConnection(peer, peer.write, limits)
    reading = asyncio.create_task(connection.read(_until_empty(peer.chunks)))
    try:
        yield connection, peer
    finally:
        await peer.chunks.put(b"")
        await asyncio.wait_for(reading, 10)
    left = [task for task in asyncio.all_tasks() if task.get_name().startswith("ACP ")]
    assert left == []


async def _until_empty(chunks: "asyncio.Queue[bytes]") -> AsyncIterator[bytes]:
    while chunk := await chunks.get():
        yield chunk


def request(number: object, method: str, **params: Any) -> dict[str, Any]:
    return {"id": number, "method": method, "params": params}


def cancel(number: object) -> dict[str, Any]:
    return {"method": "$/cancel_request", "params": {"requestId": number}}


async def test_a_request_of_the_peer_is_answered_with_its_id() -> None:
    async with connected() as (_, peer):
        await peer.tell(request("a", "hello", x=1), {"id": 2, "method": "hello"})
        assert await peer.answers(2) == [
            {"jsonrpc": "2.0", "id": "a", "result": {"method": "hello", "x": 1}},
            {"jsonrpc": "2.0", "id": 2, "result": {"method": "hello"}},
        ]


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("refuse", {"code": -5, "message": "no", "data": {"why": "because"}}),
        ("refuse without a code", {"code": -32000, "message": "no"}),
        ("misread", {"code": -32602, "message": "params.x: expected a string, received int 5"}),
        ("fail", {"code": -32603, "message": "the disk is full"}),
        ("crash", {"code": -32603, "message": "crash failed; the log on stderr has more"}),
    ],
)
async def test_each_failure_has_its_code(method: str, error: dict[str, Any]) -> None:
    async with connected() as (_, peer):
        await peer.tell(request(1, method))
        assert (await peer.answers(1))[0]["error"] == error


async def test_a_request_does_not_wait_for_an_earlier_one() -> None:
    async with connected() as (_, peer):
        await peer.tell(request(1, "wait"), request(2, "hello"))
        assert (await peer.answers(1))[0]["id"] == 2
        peer.release.set()
        assert (await peer.answers(2))[1]["id"] == 1


async def test_notifications_are_taken_in_order() -> None:
    async with connected() as (_, peer):
        await peer.tell(*({"method": "n", "params": {"i": i}} for i in range(5)), request(1, "hello"))
        await peer.answers(1)
        assert peer.notified == [("n", {"i": i}) for i in range(5)]


async def test_a_cancelled_request_ends_and_is_answered_once() -> None:
    async with connected() as (_, peer):
        await peer.tell(request(1, "wait"), request(2, "hello"))
        await peer.answers(1)
        await peer.tell(cancel(1), cancel(1), request(3, "hello"))
        await peer.answers(3)
        assert peer.error(1) == (-32800, "wait was cancelled")
        assert (peer.cancelled[:1], peer.ended) == (["wait"], ["wait"])


async def test_a_request_that_is_cancelled_at_once_is_answered_as_well() -> None:
    async with connected() as (_, peer):
        await peer.tell(request(1, "wait"), cancel(1))
        await peer.answers(1)
        assert peer.error(1) == (-32800, "wait was cancelled")


async def test_a_handler_may_end_a_cancelled_request_by_itself() -> None:
    async with connected(peer=Peer(cancels_itself=True)) as (_, peer):
        await peer.tell(request(1, "wait"), request(2, "hello"))
        await peer.answers(1)
        await peer.tell(cancel(1))
        assert (await peer.answers(2))[1] == {"jsonrpc": "2.0", "id": 1, "result": {"method": "wait"}}


@pytest.mark.parametrize("number", [99, "1", None, True, 1.0, [1], {}])
async def test_cancelling_what_is_not_running_does_nothing(number: object) -> None:
    async with connected() as (_, peer):
        await peer.tell(request(1, "wait"), cancel(number), {"method": "$/cancel_request"}, request(2, "hello"))
        await peer.answers(1)
        peer.release.set()
        assert (await peer.answers(2))[1]["result"] == {"method": "wait"}


async def test_an_id_that_is_in_use_is_refused_and_the_first_request_goes_on() -> None:
    async with connected() as (_, peer):
        await peer.tell(request(1, "wait"), request(1, "hello"))
        (refusal,) = await peer.answers(1)
        assert refusal["error"] == {"code": -32600, "message": "request 1 is still carried out; expected another id"}
        peer.release.set()
        assert (await peer.answers(2))[1]["result"] == {"method": "wait"}
        await peer.tell(request(1, "hello"))
        assert (await peer.answers(3))[2]["result"] == {"method": "hello"}


async def test_too_many_open_requests_are_refused_until_one_has_ended() -> None:
    async with connected(ConnectionLimits(open_requests=2)) as (_, peer):
        await peer.tell(request(1, "wait"), request(2, "wait"), request(3, "hello"))
        await peer.answers(1)
        assert peer.error(3) == (-32000, "2 requests are carried out already; wait for their answers")
        await peer.tell(cancel(1))
        await peer.answers(2)
        await peer.tell(request(4, "hello"))
        assert (await peer.answers(3))[2]["id"] == 4


async def test_a_malformed_line_is_answered_and_the_next_one_carried_out() -> None:
    async with connected(ConnectionLimits(message_bytes=200)) as (_, peer):
        await peer.chunks.put(b"rubbish\n" + b"x" * 1000 + b"\n")
        await peer.tell({"id": 5, "method": 5}, request(6, "hello"))
        answers = await peer.answers(4)
        assert [(answer["id"], answer.get("error", {}).get("code")) for answer in answers] == [
            (None, -32700),
            (None, -32600),
            (5, -32600),
            (6, None),
        ]


async def ask(connection: AcpConnection, timeout: float | None = 30) -> Any:
    return await connection.request("ask", {"x": 1}, timeout=timeout)


async def asked(peer: Peer) -> Callable[..., Any]:
    """Wait for our request, and return a function that answers it."""
    (message,) = await peer.answers(1)
    assert message == {"jsonrpc": "2.0", "id": 1, "method": "ask", "params": {"x": 1}}

    async def respond(**members: Any) -> None:
        await peer.tell({"id": 1, **members})

    return respond


@pytest.mark.parametrize("result", [None, 5, {"a": [1]}, []])
async def test_our_request_returns_the_result(result: object) -> None:
    async with connected() as (connection, peer):
        asking = asyncio.create_task(ask(connection))
        await (await asked(peer))(result=result)
        assert await asking == result


async def test_our_request_raises_the_error_of_the_peer() -> None:
    async with connected() as (connection, peer):
        asking = asyncio.create_task(ask(connection))
        await (await asked(peer))(error={"code": -7, "message": "busy", "data": {"a": 1}})
        with pytest.raises(RpcError, match="busy") as caught:
            await asking
        assert (caught.value.code, caught.value.data) == (-7, {"a": 1})


async def test_answers_that_are_late_repeated_or_to_nothing_change_nothing() -> None:
    async with connected() as (connection, peer):
        asking = asyncio.create_task(ask(connection))
        respond = await asked(peer)
        await peer.tell({"id": 77, "result": 0}, {"id": None, "error": {"code": 1, "message": "x"}})
        await respond(result=1)
        await respond(result=2)
        await respond(error={"code": 1, "message": "late"})
        assert await asking == 1
        await peer.tell(request(9, "hello"))
        assert (await peer.answers(2))[1]["id"] == 9


async def test_our_request_that_gets_no_answer_is_cancelled_at_the_peer() -> None:
    async with connected() as (connection, peer):
        with pytest.raises(RpcTimeoutError):
            await ask(connection, 0.01)
        assert peer.sent[1:] == [{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}]


async def test_our_request_that_nobody_waits_for_any_more_is_cancelled_at_the_peer() -> None:
    async with connected() as (connection, peer):
        asking = asyncio.create_task(ask(connection, None))
        await peer.answers(1)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert peer.sent[1:] == [{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}]


async def test_our_request_that_is_too_large_is_not_sent() -> None:
    async with connected(ConnectionLimits(message_bytes=100)) as (connection, peer):
        with pytest.raises(RpcError, match="is more than 100"):
            await connection.request("ask", {"x": "y" * 200}, timeout=30)
        assert peer.sent == []


async def test_the_end_of_the_input_ends_the_requests_of_both_sides() -> None:
    async with connected() as (connection, peer):
        asking = asyncio.create_task(ask(connection, None))
        await peer.tell(request(1, "wait"))
        await peer.answers(1)
        await peer.chunks.put(b"")
        with pytest.raises(RpcClosedError, match="the connection was lost"):
            await asking
        await eventually_async(lambda: peer.ended == ["wait"])
        with pytest.raises(RpcClosedError, match="ask: the connection is closed"):
            await ask(connection)
        await connection.notify("n", {})
        assert len(peer.sent) == 1


async def test_a_peer_that_does_not_read_any_more_ends_nothing_but_the_writing() -> None:
    async with connected() as (connection, peer):
        peer.is_gone = True
        await connection.notify("n", {})
        await peer.tell({"method": "still heard", "params": {}})
        await eventually_async(lambda: peer.notified)
        with pytest.raises(RpcClosedError):
            await ask(connection)
        assert peer.sent == []


async def test_our_request_to_a_peer_that_is_gone_does_not_wait_for_ever() -> None:
    async with connected() as (connection, peer):
        peer.is_gone = True
        with pytest.raises(RpcClosedError):
            await asyncio.wait_for(ask(connection, None), 5)


async def test_an_input_that_breaks_ends_the_connection_like_its_end() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b""
        raise ConnectionResetError("reset")

    peer = Peer()
    connection = AcpConnection(peer, peer.write)
    await connection.read(broken())
    with pytest.raises(RpcClosedError):
        await ask(connection)
