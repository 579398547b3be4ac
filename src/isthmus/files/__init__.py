"""Files on disk: atomic writing, opening without following links, Isthmus's own folders, and ignore files."""
