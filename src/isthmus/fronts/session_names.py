"""Short names of sessions: ids of a few characters, and ``latest``.

Not here: the sessions that they name, see :mod:`isthmus.fronts.conversations`, which loads more.
"""

SHORT_ID = 8
"""Minimum length of ids in lists; any unambiguous prefix of at least MIN_PREFIX characters is accepted."""
MIN_PREFIX = 4
LATEST = "latest"
"""Name of the session that has changed last."""
