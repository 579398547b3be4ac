"""Tool calls of a session: decisions, execution, questions in the middle of a call, and their events."""
