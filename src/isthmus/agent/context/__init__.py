"""Keeping a conversation within its model's context window: its size, and the summary of its older part."""
