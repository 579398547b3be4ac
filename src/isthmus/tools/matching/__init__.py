"""Finds the place of an edit in a text although the model wrote it slightly differently, and merges the edit there."""
