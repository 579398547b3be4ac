"""Repositories in which sessions work: each session in a worktree of its own."""
