"""Files that the model reads."""
