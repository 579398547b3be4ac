"""The tools, prompts and resources that MCP servers list: their schemas, their names, and what is kept of them."""
