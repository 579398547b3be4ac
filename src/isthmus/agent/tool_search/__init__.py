"""Finding and loading tools of MCP servers when their schemas are too many for the model's context."""
