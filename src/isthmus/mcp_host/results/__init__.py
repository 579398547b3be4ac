"""Results of MCP servers, repaired and split for the model and for the user."""
