"""Other readings of a piece of text and its replacement, where the piece is not in the file as it stands. Pure.

Models repeat what belongs to the form in which they were shown a text: line numbers, code fences, entities. A reading
counts only if it is in the file, so that each is tried on its own.
"""

import re
import unicodedata
from collections.abc import Iterator

from isthmus.record import record

_FENCED = re.compile(r"\s*```[^\n`]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_NUMBERED = re.compile(r"[ \t]*L?(\d{1,7})(\t|→|\|(?: |$)|: |:$)(.*)", re.DOTALL)
_NUMBER_ALONE = re.compile(r"[ \t]*L?(\d{1,7})[ \t]*(\t|→|\||:)?[ \t]*")
_MARKS = re.compile("[\ufeff\u200b\u2060]")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&apos;": "'", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))


@record
class OtherReading:
    """A piece and its replacement as they may be meant; ``words`` says what was left out, for "was found with ..."."""

    old: str
    new: str
    words: str


def readings(text: str, old: str, new: str) -> Iterator[OtherReading]:
    """Yield the other readings of `old`, the likeliest first; `text` is the file's."""
    seen = {old}
    words: list[str] = []
    for step, name in (
        (_unfenced, "a code fence, which was left out"),
        (_unnumbered, "line numbers, which were left out"),
    ):
        if (pair := step(old, new)) is not None:
            old, new = pair
            words.append(name)
            if old not in seen:
                seen.add(old)
                yield OtherReading(old, new, " and ".join(words))
    others = (
        (_MARKS.sub("", old), new if _MARKS.search(text) else _MARKS.sub("", new), "invisible characters"),
        (_unescaped(old), _unescaped(new), "entities for characters"),
        (unicodedata.normalize("NFC", old), unicodedata.normalize("NFC", new), "decomposed characters"),
        (unicodedata.normalize("NFD", old), unicodedata.normalize("NFD", new), "composed characters"),
    )
    for other_old, other_new, name in others:
        if other_old not in seen:
            seen.add(other_old)
            yield OtherReading(other_old, other_new, " and ".join([*words, name]))


def doubtful_part(text: str, old: str, new: str) -> str | None:
    """Return what `new` has of the form in which a text is shown, and neither `old` nor the file; None if nothing.

    It would be written into the file.
    """
    if _FENCED.fullmatch(new) is not None and "```" not in old and "```" not in text:
        return "a code fence"
    if new.strip("\n").count("\n") and _without_numbers(new) is not None and _without_numbers(old) is None:
        has_numbers = any(_NUMBERED.fullmatch(line) is not None for line in text.split("\n"))
        return None if has_numbers else "line numbers"
    return None


def _unfenced(old: str, new: str) -> tuple[str, str] | None:
    found = _FENCED.fullmatch(old)
    if found is None:
        return None
    if (other := _FENCED.fullmatch(new)) is not None:
        return found[1], other[1]
    return found[1] + "\n" * (new.endswith("\n") or not new), new


def _unnumbered(old: str, new: str) -> tuple[str, str] | None:
    stripped = _without_numbers(old)
    if stripped is None:
        return None
    plain, mark = stripped
    lines: list[str] = []
    for line in new.split("\n"):
        found = _NUMBERED.fullmatch(line) or _NUMBER_ALONE.fullmatch(line)
        is_numbered = found is not None and (found[2] or mark)[0] == mark
        lines.append(_rest(found) if found is not None and is_numbered else line)
    return plain, "\n".join(lines)


def _without_numbers(text: str) -> tuple[str, str] | None:
    """Return a text without the number before each line, and the mark behind these; None if one has none."""
    lines = text.split("\n")
    end = lines.pop() if lines[-1] == "" and len(lines) > 1 else None
    first: int | None = None
    marks: set[str] = set()
    plain: list[str] = []
    for index, line in enumerate(lines):
        found = _NUMBERED.fullmatch(line) or _NUMBER_ALONE.fullmatch(line)
        if found is None:
            return None
        first = int(found[1]) - index if first is None else first
        if int(found[1]) - index != first:
            return None
        if found[2]:
            marks.add(found[2][0])
        plain.append(_rest(found))
    if len(marks) != 1 or not any(character.isalnum() for line in plain for character in line):
        return None
    return "\n".join(plain if end is None else [*plain, end]), marks.pop()


def _rest(found: "re.Match[str]") -> str:
    return found[3] if found.re is _NUMBERED else ""


def _unescaped(text: str) -> str:
    return _ENTITY.sub(lambda entity: _ENTITIES[entity[0]], text)
