"""The editor of a session: found on demand, kept connected, and asked for diagnostics."""
