"""Pages and searches of the web."""
