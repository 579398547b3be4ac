"""The append-only log of events that is the only truth about a task, with its projection row and lease."""
