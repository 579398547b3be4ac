"""Benchmarks against peers: every ratio is measured in one run, on one machine, with the same load for both.

``python -m bench`` runs all of them, ``python -m bench NAME`` one. Budgets are for the CPU time of whole process trees,
memory, and best-of-rounds latencies, never for a single wall time, because machines are shared. Benchmarks are not
tests: a missed budget is printed and counted, but fails nothing.
"""
