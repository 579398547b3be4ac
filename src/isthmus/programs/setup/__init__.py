"""The setup of a program that runs an agent: options, settings, sandbox, and trust in a folder's files."""
