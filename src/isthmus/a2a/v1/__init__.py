"""A2A 1.0 over JSON-RPC and REST; both directions."""
