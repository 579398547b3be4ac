"""Files that a search left out, and the note about them for the model: no search hides that it skipped something."""

from dataclasses import dataclass, field

from isthmus.text.units import show_count
from isthmus.text.visible import printable
from isthmus.tools.port.folder_scan import LARGE_FILE_BYTES

MAXIMUM_NAMED = 5
"""Maximum number of files of a kind that a note names."""


@dataclass
class SkippedFiles:
    """Paths of files that were left out, as they are shown; `binary_names` is a number of files.

    `not_text` had matches, or were not looked at, and contain NUL bytes. Files of `binary_names` were left out by their
    names, such as images.
    """

    too_large: set[str] = field(default_factory=set[str])
    not_text: set[str] = field(default_factory=set[str])
    unreadable: set[str] = field(default_factory=set[str])
    binary_names: int = 0
    are_large_unknown: bool = False
    """Whether large files were left out without a look at which there are."""

    def of_kind(self, kind: str) -> set[str]:
        """Return the files of a kind that engines tell apart: ``large``, ``binary``, otherwise unreadable ones."""
        return {"large": self.too_large, "binary": self.not_text}.get(kind, self.unreadable)

    def note(self, *, has_matches: bool) -> str:
        """Return one line about what was left out; empty if nothing was. Files with binary names are ordinary.

        Args:
            has_matches: other files have matches; then ordinary and unknown ones are not worth a word.
        """
        limit = LARGE_FILE_BYTES // (1024 * 1024)
        parts = [
            _named(self.too_large, f"more than {limit} MiB"),
            _named(self.unreadable, "cannot be read"),
            _named(self.not_text, "not text"),
        ]
        if self.are_large_unknown and not self.too_large and not has_matches:
            parts.append(f"any files of more than {limit} MiB")
        if self.binary_names and not has_matches:
            parts.append(f"{show_count(self.binary_names, 'file')} whose names say that they are not text")
        said = "; ".join(part for part in parts if part)
        return f"[Not searched - {said}]" if said else ""


def _named(paths: set[str], reason: str) -> str:
    if not paths:
        return ""
    named = ", ".join(printable(path) for path in sorted(paths)[:MAXIMUM_NAMED])
    more = f" and {len(paths) - MAXIMUM_NAMED} more" if len(paths) > MAXIMUM_NAMED else ""
    return f"{named}{more} ({reason})"
