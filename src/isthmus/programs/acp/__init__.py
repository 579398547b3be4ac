"""The agent for ACP clients on standard input and output."""
