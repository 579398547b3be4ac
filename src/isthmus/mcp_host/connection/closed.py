"""Which errors of a request say that its connection ended, told apart from what a server itself answered.

The SDK reports an end with the code -32000, which many servers take for errors of their own: only the words differ.
"""

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED

LOST_REQUEST = "SSE stream failed: "
"""Begins what is said of a request that could not be sent, as the SDK does."""

_ENDS = ("Connection closed", "SSE stream ended", LOST_REQUEST)


def is_closed(error: MCPError) -> bool:
    """Return whether no answer came, since the connection is closed or what would have brought it broke off."""
    return error.code == CONNECTION_CLOSED and error.message.startswith(_ENDS)
