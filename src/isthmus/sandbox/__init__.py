"""Confining programs: what a policy opens, how bubblewrap is told so, and whether it works on this machine.

Knows no tool, server or setting by name; deliberately not a container: the programs of this machine are used.
"""
