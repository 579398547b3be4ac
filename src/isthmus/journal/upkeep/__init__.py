"""Upkeep of whole journals: copies, upgrades, checks and their state, for ``isthmus journal``."""
