"""Files of the editor's workspace: search, hidden files, and changes on the disk."""
