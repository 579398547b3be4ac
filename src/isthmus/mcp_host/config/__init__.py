"""Configuration of MCP servers: settings files and ``.mcp.json``, variables, secrets, trust and switches."""
