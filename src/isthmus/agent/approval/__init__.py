"""The approval policy: modes, allow-lists, calls that need an answer each time, and the analysis of shell commands."""
