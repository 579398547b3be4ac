"""Slash commands: one command or family a file, ``registry`` lists them, ``runner`` runs them inside a task."""
