"""Version 1 of the Agent Client Protocol: its messages as dataclasses, one module for each part. No I/O.

Members have the protocol's names in snake_case. Words of an enumeration are plain strings, since peers may send newer
ones; those that Isthmus knows are in the enumerations beside them.
"""
