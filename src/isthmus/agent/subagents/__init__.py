"""Subagents: agents with a task of their own, which another task has begun for a part of its work."""
