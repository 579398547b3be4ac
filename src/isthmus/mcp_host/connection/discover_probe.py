"""Asks a server over HTTP, before anything else, whether it knows a revision of MCP without a handshake.

The 2026-07-28 revision wants its headers in every request, so that a server of that revision should be sent nothing
else; a server of an older one refuses the question, and the handshake follows as if it had not been asked. Whatever it
does with the question, it is used as before: no answer is an answer after a deadline. Imports the SDK. Deliberately
not here: which way is tried then (:mod:`isthmus.mcp_host.connection.transport_probe`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.shared.inbound import MCP_METHOD_HEADER, MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from isthmus.mcp_host.diagnosis.failures import REFUSING_CODES

METHOD = "server/discover"
ID = "isthmus-discover"
"""Id of the question: a text, as those of the session that follows are numbers."""
SHARE = 0.25
"""Share of the time for connecting that the answer is waited for at most; the handshake has the rest."""


class Said(Enum):
    """Outcome of the question to a server."""

    REFUSED = "refused"
    """The server does not know the question, so it speaks a revision with a handshake, if any."""
    UNCLEAR = "unclear"
    """The server did not answer in time, or not clearly."""
    ANSWERED = "answered"
    """The server speaks a revision without a handshake, and perhaps also one with a handshake."""
    MODERN_ALONE = "modern alone"
    """The server names its revisions, and none of them has a handshake."""


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """``discovered``: how the server described itself, as JSON of MCP, where it did."""

    said: Said
    discovered: Mapping[str, Any] | None = None


async def ask(reading: Any, writing: Any, client: types.Implementation, seconds: float) -> FirstAnswer:
    """Return what a server answers over these streams of a transport within this time.

    Raises:
        anyio.EndOfStream, anyio.ClosedResourceError: the connection ended meanwhile.
    """
    with anyio.move_on_after(seconds):
        await writing.send(_question(client))
        while True:
            item: object = await reading.receive()
            match item.message if isinstance(item, SessionMessage) else None:
                case types.JSONRPCResponse() as answer if answer.id == ID:
                    return _answered(answer.result)
                case types.JSONRPCError() as refusal if refusal.id == ID:
                    return FirstAnswer(_refused(refusal.error))
                case _:
                    pass  # Not asked for; there is no session yet that it could belong to.
    cancelled = types.JSONRPCNotification(
        jsonrpc="2.0", method="notifications/cancelled", params={"requestId": ID, "reason": "no answer in time"}
    )
    await writing.send(SessionMessage(cancelled))  # The transport ends the request, and sends nothing.
    return FirstAnswer(Said.UNCLEAR)


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


def _answered(result: Mapping[str, Any]) -> FirstAnswer:
    try:
        found = types.DiscoverResult.model_validate(result, by_name=False)
    except ValidationError:
        return FirstAnswer(Said.UNCLEAR)
    if not any(version in MODERN_PROTOCOL_VERSIONS for version in found.supported_versions):
        return FirstAnswer(Said.REFUSED)
    return FirstAnswer(Said.ANSWERED, found.model_dump(mode="json", by_alias=True, exclude_none=True))


def _refused(error: types.ErrorData) -> Said:
    if error.code not in REFUSING_CODES:
        return Said.UNCLEAR
    data: object = error.data
    if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not isinstance(data, dict):
        return Said.REFUSED
    supported = cast("dict[str, object]", data).get("supported")
    versions = cast("list[object]", supported) if isinstance(supported, list) else []
    has_modern = any(version in MODERN_PROTOCOL_VERSIONS for version in versions)
    has_handshake = any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in versions)
    return Said.MODERN_ALONE if has_modern and not has_handshake else Said.REFUSED
