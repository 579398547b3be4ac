"""Metrics and traces of a server, for those who operate it; nothing here is needed to serve."""
