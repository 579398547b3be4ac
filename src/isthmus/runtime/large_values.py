"""Size from which a value is large. Work on large ones is done by :mod:`isthmus.runtime.large_work`."""

LARGE_BYTES = 256 * 1024
"""Size in bytes from which a value is large: work on it leaves the event loop."""
