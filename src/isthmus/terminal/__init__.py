"""The terminal front: a conversation in the scrollback of a terminal, and headless runs for scripts."""
