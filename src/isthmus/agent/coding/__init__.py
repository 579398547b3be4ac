"""The coding agent: the loop over model and tools, its guard against repetition, and its other models."""
