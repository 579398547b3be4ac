"""Sessions of a user: the list, messages that wait, changes and pictures."""
