"""Content that is no text, such as an image, as it is spoken of everywhere: its kind, and the file that keeps it.

The bytes are in the file alone: no event, message or journal holds them. Deliberately not here: reading them
(:mod:`isthmus.models.attachments`), and writing them.
"""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Media:
    """Content that is no text: kept in a file, for models that take its kind.

    ``media_type`` is e.g. ``image/png``; ``path`` is absolute. A model that does not take it, or a file that is gone,
    becomes a line of text that says where it is.
    """

    media_type: str
    path: Path
