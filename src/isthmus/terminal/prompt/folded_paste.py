"""Long texts that the user pastes: the prompt shows a short stand-in, and what is sent has the whole text. Pure."""

import re
from dataclasses import dataclass, field

from isthmus.text.units import show_count

MAXIMUM_LINES = 5
"""Maximum number of lines of a paste that is shown whole."""
MAXIMUM_CHARACTERS = 500
"""Maximum number of characters of a paste that is shown whole."""
_STAND_IN = re.compile(r"\[Pasted text (\d{1,9}): [\d,]+ (?:lines|characters)\]")


@dataclass(slots=True)
class FoldedPastes:
    """The folded texts of one run of the program; the first has number 1."""

    texts: list[str] = field(default_factory=list[str])

    def fold(self, text: str) -> str:
        """Return the stand-in for a pasted text, or the text itself if it is short."""
        lines = text.count("\n") + 1
        if lines <= MAXIMUM_LINES and len(text) <= MAXIMUM_CHARACTERS:
            return text
        if text not in self.texts:
            self.texts.append(text)
        return self._stand_in(self.texts.index(text))

    def unfold(self, text: str) -> str:
        """Return a text with the pasted texts in place of their stand-ins."""
        return _STAND_IN.sub(lambda found: self._text(found) or found[0], text)

    def before(self, text: str) -> str:
        """Return the stand-in at the end of the text before the cursor; empty if there is none."""
        found = _STAND_IN.search(text, text.rfind("[")) if "[" in text else None
        return found[0] if found is not None and found.end() == len(text) and self._text(found) else ""

    def _text(self, found: re.Match[str]) -> str:
        """Return the text that a stand-in is for; empty if nobody pasted it."""
        at = int(found[1]) - 1
        return self.texts[at] if 0 <= at < len(self.texts) and found[0] == self._stand_in(at) else ""

    def _stand_in(self, at: int) -> str:
        text = self.texts[at]
        lines = text.count("\n") + 1
        size = show_count(lines, "line") if lines > 1 else show_count(len(text), "character")
        return f"[Pasted text {at + 1}: {size}]"
