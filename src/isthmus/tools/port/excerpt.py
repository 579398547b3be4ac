"""Cuts texts to the limits of what a model is shown, with a note about omissions."""

from isthmus.record import record
from isthmus.text.diff import split_lines

MAXIMUM_LINES = 2_000
MAXIMUM_LINE_CHARACTERS = 2_000
MAXIMUM_CHARACTERS = 40_000
"""Maximum number of characters that one call gives to the model: about 10,000 tokens."""

LINE_CUT = "... [line cut]"


@record
class Excerpt:
    """Lines `first` to `last` (1-based, inclusive; last < first if there are none) of `total`."""

    text: str
    first: int
    last: int
    total: int
    has_cut_lines: bool

    @property
    def is_partial(self) -> bool:
        """Whether anything of the file is missing."""
        return self.has_cut_lines or self.first > 1 or self.last < self.total

    @property
    def numbered(self) -> str:
        """The text with the number of each line and a tab before it, as edits read it back."""
        lines = split_lines(self.text)
        return "".join(f"{number}\t{line}" for number, line in enumerate(lines, self.first))

    def note(self, shown: str) -> str:
        """Return a note for the model that the text is a part of the file which the model calls `shown`."""
        if self.last < self.first:
            return f"[{shown} has {self.total} lines; there is no line {self.first}.]\n"
        parts = [f"[Lines {self.first}-{self.last} of {self.total} of {shown}."]
        if self.last < self.total:
            parts.append(f" To read on, use start_line: {self.last + 1}.")
        if self.has_cut_lines:
            parts.append(f" Lines of more than {MAXIMUM_LINE_CHARACTERS} characters are cut.")
        return "".join(parts) + "]\n"


def excerpt_of(text: str, start: int = 1, end: int | None = None, maximum: int = MAXIMUM_CHARACTERS) -> Excerpt:
    """Return lines `start` to `end` (1-based, inclusive) of `text`, cut to the limits and to `maximum` characters."""
    lines = split_lines(text)
    total = len(lines)
    stop = min(total, total if end is None else end, start + MAXIMUM_LINES - 1)
    pieces: list[str] = []
    size = 0
    has_cut_lines = False
    for line in lines[start - 1 : stop]:
        if len(line) > MAXIMUM_LINE_CHARACTERS + 1:
            line = line[:MAXIMUM_LINE_CHARACTERS] + LINE_CUT + "\n" * line.endswith("\n")
            has_cut_lines = True
        size += len(line)
        if size > maximum and pieces:
            break
        pieces.append(line)
    return Excerpt("".join(pieces), start, start + len(pieces) - 1, total, has_cut_lines)
