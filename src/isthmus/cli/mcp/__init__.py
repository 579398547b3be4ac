"""``isthmus mcp``: one module for each of its commands."""
