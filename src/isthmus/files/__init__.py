"""Files on disk: written at once, opened without following links, where our own lie, and ignore files."""
