"""Diagnostics for editors without their own: ruff and pyright, run on request as separate processes."""
