"""The A2A server: its settings, engine, pages, and the other servers of this user."""
