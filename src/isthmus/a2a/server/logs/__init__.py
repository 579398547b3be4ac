"""The access log and the audit log of a server."""
