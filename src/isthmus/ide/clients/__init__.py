"""Our own agent as the client of an IDE extension, whatever its protocol."""
