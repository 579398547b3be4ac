"""The agent and the editor as tools of an MCP server."""
