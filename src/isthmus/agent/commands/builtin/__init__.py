"""The built-in slash commands, one command or family a file."""
