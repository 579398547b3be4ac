"""Jupyter notebooks as text: their cells, what changed in them, and how they are shown for a review."""
