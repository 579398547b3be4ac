"""The journal in PostgreSQL, for several processes and machines."""
