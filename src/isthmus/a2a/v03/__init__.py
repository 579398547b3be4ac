"""A2A 0.3 over JSON-RPC; both directions."""
