"""Questions of MCP servers during a call: elicitation, sampling, and pages to visit."""
