"""Our own agent as the client of somebody's IDE extension, whatever its protocol."""
