"""The port of the journal: its methods, rows, queue, pushes and files, and the processes that share it."""
