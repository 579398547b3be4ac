"""Addresses on the network: this machine's own, and connections to the ones that a rule allows."""
