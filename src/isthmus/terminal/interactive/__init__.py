"""The conversation with a user in a terminal: turns, questions, commands and the status line."""
