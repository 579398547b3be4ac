"""Logins to MCP servers: OAuth according to MCP's specification, stored tokens, and Google accounts."""
