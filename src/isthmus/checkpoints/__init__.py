"""Files as they were before an agent edited them, and their restore; base.py is the port, store.py a SQLite file."""
