"""Companions in the page: their reviews, questions, files and written changes."""
