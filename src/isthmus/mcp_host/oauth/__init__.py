"""Logging in to MCP servers: OAuth as their specification has it, kept tokens, and a Google account."""
