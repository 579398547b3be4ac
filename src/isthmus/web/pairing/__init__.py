"""Pairing of browsers: codes, links, and the devices of users."""
