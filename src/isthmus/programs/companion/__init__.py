"""The companion of an editor, and its page."""
