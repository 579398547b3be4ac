"""Isthmus joins coding agents to the places where people work."""

__version__ = "0.1.0"
