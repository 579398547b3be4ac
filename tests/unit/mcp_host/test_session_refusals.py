"""Facts about a request from the error that it ended with: whether it reached the server of a session."""

import anyio
import mcp_types as types
import pytest
from mcp import ClientSession, MCPError
from mcp.shared.message import SessionMessage

from isthmus.mcp_host.transports.session_refusals import SessionRefusal, refusal_of

pytestmark = pytest.mark.anyio


async def error_of_ping(*, is_taken: bool) -> MCPError:
    """Return the error of a ping whose transport ends after it took the ping, or before."""
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage](0)

    async def transport() -> None:
        if is_taken:
            await from_client.receive()
        from_client.close()
        if is_taken:
            to_client.close()

    async with (
        to_client,
        from_server,
        to_server,
        from_client,
        ClientSession(from_server, to_server) as session,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(transport)
        try:
            await session.send_request(types.PingRequest(), types.EmptyResult)
        except MCPError as error:
            return error
    pytest.fail("the ping was answered")


async def test_a_request_that_the_ended_transport_did_not_take_is_unsent() -> None:
    assert refusal_of(await error_of_ping(is_taken=False)) is SessionRefusal.UNSENT


async def test_of_a_request_that_the_transport_took_nothing_is_known() -> None:
    assert refusal_of(await error_of_ping(is_taken=True)) is None
