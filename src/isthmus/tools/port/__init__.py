"""The port of tools, and helpers for tools of any package: arguments, failures, files and texts."""
