"""What files were before an agent edited them, and putting them back; base.py is the port, store.py a SQLite file."""
