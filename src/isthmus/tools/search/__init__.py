"""Search in the workspace: folders, names of files, and lines."""
