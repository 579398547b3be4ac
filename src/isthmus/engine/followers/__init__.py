"""Followers of tasks: events, snapshots, and the questions that are open."""
