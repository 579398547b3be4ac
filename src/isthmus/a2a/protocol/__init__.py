"""A2A free of protocol versions, for both directions: operations, items, tasks, and the development-tool extension."""
