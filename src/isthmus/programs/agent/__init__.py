"""The agent that a program runs: our own in this process, or the agent of another author."""
