"""Backups of files before an agent edits them, and their restore; base.py is the port, store.py uses SQLite."""
