"""Our own agent as a client of IDE extensions of any protocol."""
