"""Models that answer from a script, for demonstrations and tests."""
