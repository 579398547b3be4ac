"""Runs of tasks in this process: claimed, kept by a lease, cancelled, and handed out to free slots."""
