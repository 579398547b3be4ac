"""The tools, prompts and resources that MCP servers list: their schemas, their names and their cached listings."""
