"""Jupyter notebooks as text: their cells, their changes, and the display of changes for a review."""
