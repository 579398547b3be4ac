"""Benchmarks beside peers: every ratio is measured in one run, on one machine, with the same load for both.

``python -m bench`` runs all, ``python -m bench NAME`` one. Verdicts are about CPU time of whole process trees, memory,
and best-of-rounds latencies, never about one wall time: machines are shared. Deliberately not tests: a missed budget
is printed and counted, it fails nothing by itself.
"""
