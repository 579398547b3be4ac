"""Addresses on the network: which are on this machine, and connecting to those that a rule allows."""
