"""The two kinds of agent: our coding agent, the loop over model and tools; and agents of other authors."""
