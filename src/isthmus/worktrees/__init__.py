"""Worktrees of git repositories for sessions: kept apart from the user's files, and carried between machines."""
