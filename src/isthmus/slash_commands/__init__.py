"""Slash commands: the tree of commands, and the arguments after a name."""
