"""Turns a model's thinking into an AgentThought with subject and description (development-tool extension)."""

import re
from collections.abc import Iterator

from isthmus.development_tool import AgentThought

_BOLD_SUBJECT = re.compile(r"\s*\*\*(?P<subject>[^*\n]+)\*\*\s*(?P<description>.*)", re.DOTALL)
_SUBJECT_LENGTH = 80


def thought_of(text: str) -> AgentThought:
    """Return a thought from ``**Subject** description`` (Gemini); otherwise the shortened first line is the subject."""
    if found := _BOLD_SUBJECT.fullmatch(text):
        return AgentThought(found["subject"].strip(), found["description"].strip())
    whole = text.strip()
    first, _, _ = whole.partition("\n")
    subject = first if len(first) <= _SUBJECT_LENGTH else first[: _SUBJECT_LENGTH - 1].rstrip() + "…"
    return AgentThought(subject, whole)


_HEADING = re.compile(r"\s*\*\*(?P<subject>[^*\n]+)\*\*[ \t]*")


class ThoughtStream:
    """Thinking as it comes: a heading in bold, alone on its line, begins another thought."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line = ""
        self._shown = ""
        self._heading = ""

    def feed(self, text: str) -> Iterator[AgentThought | str]:
        """Yield the thoughts that this text completes, and the subject of the present one whenever it changes.

        The subject of thinking without headings is the beginning of its present line.
        """
        *ended, last = text.split("\n")
        for part in ended:
            self._line += part
            if _HEADING.fullmatch(self._line) and (thought := self._before_line()) is not None:
                yield thought
            yield from self._subject()
            self._lines.append(self._line)
            self._line = ""
        self._line += last
        yield from self._subject()

    def finish(self) -> AgentThought | None:
        """Return the last thought, and begin again."""
        self._lines.append(self._line)
        self._line = self._shown = ""
        return self._before_line()

    def _before_line(self) -> AgentThought | None:
        text, self._lines, self._heading = "\n".join(self._lines), [], ""
        return thought_of(text) if text.strip() else None

    def _subject(self) -> Iterator[str]:
        if (
            not self._heading
            and not any(line.strip() for line in self._lines)
            and (found := _HEADING.match(self._line))
        ):
            self._heading = found["subject"].strip()
        text = self._line.strip()
        if self._heading:
            subject = self._heading
        elif len(text) >= _SUBJECT_LENGTH or text.endswith((".", ":", "?", "!")):
            subject = thought_of(text[: _SUBJECT_LENGTH + 1]).subject
        else:
            return
        if subject != self._shown:
            self._shown = subject
            yield subject
