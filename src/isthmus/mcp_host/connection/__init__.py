"""A connection to one MCP server: how it is made, kept and made again, and its session over the SDK."""
