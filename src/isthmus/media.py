"""Content other than text, such as an image: its kind, and the file that keeps it.

The bytes are in the file alone: no event, message or journal holds them. Deliberately not here: reading them
(:mod:`isthmus.models.attachments`), and writing them.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Media:
    """Content other than text, kept in a file for models that accept its kind.

    ``media_type`` is e.g. ``image/png``; ``path`` is absolute. A model that does not take it, or a file that is gone,
    becomes a line of text with its path.
    """

    media_type: str
    path: Path
