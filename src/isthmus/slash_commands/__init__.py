"""Slash commands: the tree of commands, and the arguments behind a name."""
