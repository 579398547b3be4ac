"""Diagnostics for editors that have none: ruff and pyright, run on request as processes of their own."""
