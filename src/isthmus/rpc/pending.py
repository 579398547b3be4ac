"""Requests that wait for their responses, in asyncio, on any wire."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.rpc.messages import RequestId


class RpcTimeoutError(IsthmusError):
    """No response came within the deadline; the request may still be carried out later."""


class RpcClosedError(IsthmusError):
    """The connection is lost or was closed."""


class PendingRequests:
    """The requests of one connection that wait for a response, by id."""

    def __init__(self) -> None:
        self._futures: dict[RequestId, asyncio.Future[Any]] = {}

    async def wait(
        self,
        request_id: RequestId,
        method: str,
        timeout: float | None,
        send: Callable[[], Awaitable[None]] | None = None,
    ) -> Any:
        """Send a request by ``send``, and return its result; ``timeout`` is for both in seconds, None for no deadline.

        Raises:
            RpcTimeoutError: no response came within the deadline.
            IsthmusError: the error of :meth:`fail` or :meth:`fail_all`.
        """
        future = self._futures[request_id] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                if send is not None:
                    await send()
                return await future
        except TimeoutError as error:
            raise RpcTimeoutError(f"{method}: no answer within {timeout or 0:g} s") from error
        finally:
            del self._futures[request_id]
            if not future.cancel() and not future.cancelled():
                future.exception()  # or asyncio logs an error that came too late as never retrieved

    def resolve(self, request_id: RequestId, result: object) -> None:
        """End the wait for a request with its result; a late result is ignored."""
        future = self._futures.get(request_id)
        if future is not None and not future.done():
            future.set_result(result)

    def fail(self, request_id: RequestId | None, error: IsthmusError) -> None:
        """End the wait for a request with an error; a late error is ignored."""
        future = None if request_id is None else self._futures.get(request_id)
        if future is not None and not future.done():
            future.set_exception(error)

    def fail_all(self, error: Callable[[], IsthmusError]) -> None:
        """End every wait, each with an error of its own."""
        for request_id in self._futures:
            self.fail(request_id, error())
