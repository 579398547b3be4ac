"""The Model Context Protocol as agent CLIs and IDE extensions speak it, without sockets: both sides, and tools."""
