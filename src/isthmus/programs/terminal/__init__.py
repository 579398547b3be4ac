"""Runs in the terminal: the request of one start, and runs in a worktree."""
