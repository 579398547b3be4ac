"""References to resources of MCP servers in a user's message: the syntax ``@server:uri``, and reading the resources."""
