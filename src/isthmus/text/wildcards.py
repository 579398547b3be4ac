"""Patterns in which ``*`` stands for any text, compared in linear time."""


def matches_wildcard(pattern: str, text: str) -> bool:
    """Return whether the whole of a text fits a pattern."""
    first, *others = pattern.split("*")
    if not others:
        return text == pattern
    *middle, last = others
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last) or end < len(first):
        return False
    position = len(first)
    for part in middle:
        if (found := text.find(part, position, end)) < 0:
            return False
        position = found + len(part)
    return True
