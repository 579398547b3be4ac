"""Questions of MCP servers in the middle of a call: elicitation, sampling, and pages to visit."""
