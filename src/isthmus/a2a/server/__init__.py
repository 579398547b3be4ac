"""The A2A server: HTTP, authentication, and how answers are written."""
