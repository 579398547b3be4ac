"""Agents of other authors that speak ACP, as our engine runs them: a session is a process, a segment is a turn."""
