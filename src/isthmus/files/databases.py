"""Transactions of SQLite files."""

import contextlib
import sqlite3


def roll_back(connection: sqlite3.Connection) -> None:
    """End a transaction that failed; SQLite has already ended it after some errors, such as a full disk."""
    if connection.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
