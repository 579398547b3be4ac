"""Model Context Protocol as agent CLIs and IDE extensions use it: client side, server side and tools, without I/O."""
