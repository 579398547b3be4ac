"""The connection to one MCP server: connecting, staying connected, reconnecting, and the session over the SDK."""
