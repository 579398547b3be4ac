"""The agents that an engine runs, and its options: workspaces, placement and retention."""
