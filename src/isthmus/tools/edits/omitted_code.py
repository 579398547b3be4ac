"""Lines that stand for code which a model has left out: written into a file, they would remove it. Pure."""

import re

_MARKS = r"(?://+|#+|--+|;+|%+|/\*+|\{/\*|<!--|\(\*|\"\"\"|'''|REM\b|::|\*)"
_CLOSING = r"(?:\*+/\}?|-->|\*\)|\"\"\"|''')"
_DOTS = r"(?:\.{3,}|\u2026)"
_LINE = re.compile(rf"^\s*(?P<mark>{_MARKS})?\s*(?P<text>.*?)\s*(?:{_CLOSING})?\s*$", re.IGNORECASE)
_WRAPPED = re.compile(r"^[\[({<]\s*(.*?)\s*[\])}>]$")
_WHAT = (
    r"(?:code|file|files|contents?|methods?|functions?|implementations?|lines?|imports?|class(?:es)?|body|bodies|logic"
    r"|tests?|config(?:uration)?|elements?|items?|entries|fields?|props|styles?|rules?|cases?|keys?|values?|text"
    r"|sections?|script|component|module|routes?|handlers?|definitions?|declarations?|attributes?|members?|it|stuff)"
)
_LEFT = r"(?:rest|remainder|remaining|existing|previous|unchanged|original|other|same|current|old|earlier)"
_STAYS = (
    r"(?:unchanged|the same|as is|as it (?:is|was)|as before|here|goes here|stays?|remains?|omitted|unmodified"
    r"|not shown|untouched|continues?|follows?|below|above|for brevity|no changes?)"
)
_PHRASES = (
    rf"(?:the )?{_LEFT}(?: of)?(?: the| your| this)?(?: \w+){{0,2}}? ?{_WHAT}?(?: \w+)?(?: ?{_STAYS})*",
    rf"(?:\w+ )?{_WHAT}(?: \w+)?(?: (?:is|are))?(?: {_STAYS})+",
    rf"(?:keep|leave|retain)(?: \w+){{0,3}} {_WHAT}(?: {_STAYS})*",
    rf"{_STAYS}(?: {_STAYS})*",
    r"(?:same|unchanged) (?:code )?as (?:before|above)",
    r"no changes? (?:here|below|above|needed)?",
    r"etc\.?",
    r"and so on",
    r"snip(?:ped)?",
)
_PHRASE = re.compile(rf"(?:{'|'.join(_PHRASES)})", re.IGNORECASE)
_NOUN = re.compile(_WHAT, re.IGNORECASE)
_EXPLICIT = re.compile(
    rf"(?:the )?(?:rest|remainder) of (?:the |your |this )?(?:\w+ )?{_WHAT}"
    rf"(?: (?:is|are|stays?|remains?|goes?|continues?))?(?: {_STAYS})*"
    rf"|(?:existing|remaining|unchanged|previous|original) {_WHAT}(?: (?:is|are|stays?|remains?|goes?))?(?: {_STAYS})+"
    rf"|unchanged {_WHAT}"
    rf"|{_WHAT} (?:is |are )?(?:omitted|unchanged|not shown)(?: for brevity| here)?",
    re.IGNORECASE,
)
"""Words that stand for omitted code even without dots, if they are all of a comment."""
_WORDS = ("rest of", "remain", "existing", "unchanged", "omitted", "previous", "original")
LONGEST = 120
"""Maximum length in characters of a line that stands for others."""


def omitted_line(text: str, old: str) -> str | None:
    """Return the first line of ``text`` that stands for omitted code of ``old``; None if there is none.

    A line like these is not in ``old``, and lines of ``old`` are not in ``text``: an example that is added removes
    nothing.
    """
    line = _first_line(text, old)
    if line is None:
        return None
    left = {each.strip() for each in text.splitlines()}
    return line if any(each.strip() not in left for each in old.splitlines() if each.strip()) else None


def _first_line(text: str, old: str) -> str | None:
    known: set[str] | None = None
    for line in text.splitlines():
        if len(line) > LONGEST or not _may_stand_for_others(line) or not _stands_for_others(line):
            continue
        if known is None:
            known = {each.strip() for each in old.splitlines()}
        if line.strip() not in known:
            return line.strip()
    return None


def _may_stand_for_others(line: str) -> bool:
    """Return whether to look closer: nearly all lines have neither dots nor one of the words."""
    lower = line.lower()
    return "..." in line or "\u2026" in line or any(word in lower for word in _WORDS)


def _stands_for_others(line: str) -> bool:
    found = _LINE.match(line)
    if found is None:
        return False
    is_comment, words = found["mark"] is not None, found["text"].strip()
    if (inner := _WRAPPED.match(words)) is not None:
        words = inner[1]
    bare = re.sub(rf"^{_DOTS}\s*|\s*{_DOTS}$", "", words)
    has_dots, is_between = bare != words, re.match(rf"{_DOTS}.*{_DOTS}$", words) is not None
    bare = bare.strip(" .:!-").strip()
    if (inner_too := _WRAPPED.match(bare)) is not None:
        bare = inner_too[1]
    if not bare:
        return False  # dots alone are code in Python, and prose elsewhere
    if has_dots and (is_comment or is_between or inner is not None):
        return _PHRASE.fullmatch(bare) is not None or (is_comment and _NOUN.fullmatch(bare) is not None)
    if has_dots:
        return _EXPLICIT.fullmatch(bare) is not None
    # A line that begins with a star is prose in the middle of a comment, more often than not.
    return (is_comment or inner is not None) and found["mark"] != "*" and _EXPLICIT.fullmatch(bare) is not None
