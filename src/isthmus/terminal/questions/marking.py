"""The line of a menu that the arrow keys have marked. Pure."""

from dataclasses import dataclass


@dataclass(slots=True)
class Marking:
    """A mark at one of ``count`` lines, which Enter chooses. ``at`` counts from 0.

    No line is marked at first, since an early Enter may be meant for something else.
    """

    count: int
    at: int | None = None

    def up(self) -> None:
        """Mark the line above, or the last one."""
        if self.count:
            self.at = (self.count if self.at is None else self.at) - 1 if self.at != 0 else self.count - 1

    def down(self) -> None:
        """Mark the line below, or the first one."""
        if self.count:
            self.at = 0 if self.at is None else (self.at + 1) % self.count
