"""Confinement of programs: what a policy opens, bubblewrap's command line for it, and whether it works here.

Knows no tool, server or setting by name. Uses the programs of this machine, unlike a container.
"""
