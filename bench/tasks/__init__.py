"""Tasks for an agent with any model: solved or not, turns, tokens and cost. ``python -m bench.tasks --help``."""
