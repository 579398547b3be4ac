"""Finding and loading tools of MCP servers where the schemas of all would be too many for the model."""
