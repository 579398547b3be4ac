"""Tool calls of a session: which are made, how each runs, and what is recorded of those that do not run."""
