"""Configuration of MCP servers: settings files and ``.mcp.json``, variables, secrets, trust, switched-off servers."""
