"""Diagnosis of MCP servers: what was exchanged with them, what they wrote, and why one cannot be used."""
