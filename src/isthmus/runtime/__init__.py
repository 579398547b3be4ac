"""Child processes and threads, the port by which operators see work, and the variables of model keys."""
