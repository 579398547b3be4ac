"""Edits of files, of which the user sees the change first."""
