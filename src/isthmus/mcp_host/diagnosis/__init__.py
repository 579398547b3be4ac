"""Diagnosis of MCP servers: their messages, their output, and the reasons why one cannot be used."""
