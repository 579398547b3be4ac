"""Errors of a request that mean the end of its connection, as opposed to a server's own errors.

The SDK reports the end with the code -32000, which many servers use for errors of their own: only the text differs.
"""

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED

LOST_REQUEST = "SSE stream failed: "
"""Begins what is said of a request that could not be sent, as the SDK does."""

_ENDS = ("Connection closed", "SSE stream ended", LOST_REQUEST)


def is_closed(error: MCPError) -> bool:
    """Return whether no answer came, since the connection is closed or what would have brought it broke off."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_ENDS)
