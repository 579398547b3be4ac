"""The approval policy: modes, allow-lists, what is asked each time, and how a shell command is read for that."""
