"""The journal: append-only events, the only source of truth about a task, with its projection row and lease."""
