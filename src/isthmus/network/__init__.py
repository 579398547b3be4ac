"""Addresses on the network: those of this machine, and connections to those that a rule allows."""
