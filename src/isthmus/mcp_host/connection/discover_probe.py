"""The first question to a server over HTTP: whether it supports a revision of MCP without a handshake.

The 2026-07-28 revision requires its headers in every request, so a server of that revision is asked before it is sent
anything else. A server of an older revision refuses the question; the handshake then follows as if the question had
not been asked. The handshake also follows if there is no answer before the deadline. Imports the SDK. Not here: the
transport that is tried next, see :mod:`isthmus.mcp_host.connection.transport_probe`.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from isthmus.mcp_host.diagnosis.failures import REFUSING_CODES
from isthmus.record import record

METHOD = "server/discover"
ID = "isthmus-discover"
"""Id of the question: a string, because the session that follows uses numbers."""
SHARE = 0.25
"""Maximum share of the time for connecting that is spent waiting for the answer; the rest is for the handshake."""


class DiscoverOutcome(Enum):
    """Outcome of the question to a server."""

    REFUSED = "refused"
    """The server does not know the question. If it speaks MCP, it speaks a revision with a handshake."""
    UNCLEAR = "unclear"
    """The server did not answer in time, or its answer is not conclusive."""
    ANSWERED = "answered"
    """The server speaks a revision without a handshake, and perhaps also one with a handshake."""
    MODERN_ALONE = "modern alone"
    """The server listed its revisions, and none of them has a handshake."""


@record
class FirstAnswer:
    """The server's answer to the question. ``discovered`` is its description of itself, as JSON of MCP, if any."""

    outcome: DiscoverOutcome
    discovered: Mapping[str, Any] | None = None


async def ask(reading: Any, writing: Any, client: types.Implementation, seconds: float) -> FirstAnswer:
    """Ask the server over these streams of a transport, and return its answer within `seconds`.

    Raises:
        anyio.EndOfStream, anyio.ClosedResourceError: the connection ended before the answer.
    """
    with anyio.move_on_after(seconds):
        await writing.send(_question(client))
        while True:
            item: object = await reading.receive()
            match item.message if isinstance(item, SessionMessage) else None:
                case types.JSONRPCResponse() as answer if answer.id == ID:
                    return _read_result(answer.result)
                case types.JSONRPCError() as refusal if refusal.id == ID:
                    return FirstAnswer(_read_error(refusal.error))
                case _:
                    pass  # An unrequested message; there is no session yet that could handle it.
    cancelled = types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": ID, "reason": "no answer in time"}
    )
    await writing.send(SessionMessage(cancelled))  # The transport ends the request without sending this message.
    return FirstAnswer(DiscoverOutcome.UNCLEAR)


def _question(client: types.Implementation) -> SessionMessage:
    params = {
        "_meta": {
            types.PROTOCOL_VERSION_META_KEY: LATEST_MODERN_VERSION,
            types.CLIENT_INFO_META_KEY: client.model_dump(by_alias=True, mode="json", exclude_none=True),
            types.CLIENT_CAPABILITIES_META_KEY: {},
        }
    }
    headers = {MCP_PROTOCOL_VERSION_HEADER: LATEST_MODERN_VERSION, MCP_METHOD_HEADER: METHOD}
    request = types.JSONRPCRequest(jsonrpc="2.0", id=ID, method=METHOD, params=params)
    return SessionMessage(request, metadata=ClientMessageMetadata(headers=headers))


def _read_result(result: Mapping[str, Any]) -> FirstAnswer:
    try:
        found = types.DiscoverResult.model_validate(result, by_name=False)
    except ValidationError:
        return FirstAnswer(DiscoverOutcome.UNCLEAR)
    if not any(version in MODERN_PROTOCOL_VERSIONS for version in found.supported_versions):
        return FirstAnswer(DiscoverOutcome.REFUSED)
    return FirstAnswer(DiscoverOutcome.ANSWERED, found.model_dump(mode="json", by_alias=True, exclude_none=True))


def _read_error(error: types.ErrorData) -> DiscoverOutcome:
    if error.code not in REFUSING_CODES:
        return DiscoverOutcome.UNCLEAR
    data: object = error.data
    if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not isinstance(data, dict):
        return DiscoverOutcome.REFUSED
    supported = cast("dict[str, object]", data).get("supported")
    versions = cast("list[object]", supported) if isinstance(supported, list) else []
    has_modern = any(version in MODERN_PROTOCOL_VERSIONS for version in versions)
    has_handshake = any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in versions)
    return DiscoverOutcome.MODERN_ALONE if has_modern and not has_handshake else DiscoverOutcome.REFUSED
