"""A2A 0.3, for server and client."""
