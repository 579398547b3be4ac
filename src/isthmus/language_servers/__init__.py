"""Language servers of a project: what they report after the agent's edits, without an editor."""
