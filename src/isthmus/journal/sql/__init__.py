"""SQL, rows, and the rules of writing that the journals in SQLite and in PostgreSQL share."""
