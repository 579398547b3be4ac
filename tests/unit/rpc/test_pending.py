"""Requests that wait: each gets its own result or error, and leaves nothing behind."""

import asyncio

import pytest

from isthmus.rpc.messages import RpcError
from isthmus.rpc.pending import PendingRequests, RpcClosedError, RpcTimeoutError

pytestmark = pytest.mark.anyio


async def test_each_request_gets_its_own_result_or_error() -> None:
    pending = PendingRequests()
    first, second = (asyncio.create_task(pending.wait(number, "m", 30)) for number in (1, 2))
    await asyncio.sleep(0)
    pending.resolve(2, "two")
    pending.resolve(2, "again")
    pending.fail(1, RpcError(-1, "no"))
    pending.fail(None, RpcError(-1, "of nothing"))
    pending.resolve(3, "unknown")
    assert await second == "two"
    with pytest.raises(RpcError, match="no"):
        await first


async def test_the_deadline_holds_for_sending_too() -> None:
    async def send() -> None:
        await asyncio.Event().wait()

    pending = PendingRequests()
    with pytest.raises(RpcTimeoutError, match=r"slow: no answer within 0\.01 s"):
        await pending.wait(1, "slow", 0.01, send)
    with pytest.raises(RpcTimeoutError):
        await pending.wait(1, "slow", 0.01)
    pending.resolve(1, "late")


async def test_an_answer_that_comes_while_the_request_is_sent_is_not_lost() -> None:
    pending = PendingRequests()

    async def send() -> None:
        pending.resolve(1, "early")

    assert await pending.wait(1, "m", None, send) == "early"


async def test_a_lost_connection_fails_all_with_an_error_each() -> None:
    pending = PendingRequests()
    tasks = [asyncio.create_task(pending.wait(number, "m", None)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    pending.fail_all(lambda: RpcClosedError("lost"))
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(outcomes[0], asyncio.CancelledError)
    assert [type(outcome) for outcome in outcomes[1:]] == [RpcClosedError, RpcClosedError]
    assert outcomes[1] is not outcomes[2]
