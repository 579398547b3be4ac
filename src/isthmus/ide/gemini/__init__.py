"""Spec 1: the companion that Gemini CLI and its forks connect to over MCP and HTTP, and our client of them."""
