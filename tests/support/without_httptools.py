"""A pytest plugin that hides httptools, as on an interpreter without its wheels: ``-p support.without_httptools``."""

import sys

sys.modules["httptools"] = None  # type: ignore[assignment]
