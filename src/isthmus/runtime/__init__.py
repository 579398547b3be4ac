"""Child processes and threads."""
