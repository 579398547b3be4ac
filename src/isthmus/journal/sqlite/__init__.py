"""The embedded journal, in a file of SQLite."""
