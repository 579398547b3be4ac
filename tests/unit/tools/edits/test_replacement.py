import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.tools.edits.replacement import NotReplaced, Replaced, replace_text

PIECES = st.text(st.sampled_from("ab \t\n"), max_size=12)


def replaced(text: str, old: str, new: str, expected: int | None = 1) -> str:
    outcome = replace_text(text, old, new, expected)
    assert isinstance(outcome, Replaced), outcome
    return outcome.text


def is_made(text: str, old: str, new: str, start: int) -> bool:
    """Return whether the text has the replacement around the piece at `start`."""
    starts = (start - offset for offset in range(len(new)) if new.startswith(old, offset))
    return old != new and any(begin >= 0 and text.startswith(new, begin) for begin in starts)


@given(before=PIECES, old=PIECES.filter(bool), new=PIECES, after=PIECES)
def test_an_exact_piece_is_replaced_and_nothing_else(before: str, old: str, new: str, after: str) -> None:
    text = before + old + after
    if text.count(old) != 1 or text.find(old, text.find(old) + 1) >= 0:
        return
    if is_made(text, old, new, len(before)):
        outcome = replace_text(text, old, new)
        assert isinstance(outcome, NotReplaced)
        assert (outcome.count, outcome.made_at > 0) == (1, True)
        return
    assert replaced(text, old, new) == before + new + after
    if "\n" in text:
        assert replaced(text.replace("\n", "\r\n"), old, new) == (before + new + after).replace("\n", "\r\n")


@given(PIECES, PIECES.filter(bool), PIECES)
def test_the_count_is_that_of_the_occurrences(text: str, old: str, new: str) -> None:
    outcome = replace_text(text, old, new, None)
    if isinstance(outcome, NotReplaced) and outcome.made_at:
        assert outcome.count in (0, text.count(old))
        assert new.strip("\n") in text or outcome.count
    elif old in text:
        assert outcome == Replaced(text.replace(old, new), text.count(old), tolerated="")


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a\r\nb\r\nc", "a\nb\n", "x\ny\n", "x\r\ny\r\nc"),
        ("a\nb\nc", "a\r\nb\r\n", "x\r\n", "x\nc"),
        ("a\r\nb\nc\r\n", "b\nc\n", "b\nnew\nc\n", "a\r\nb\nnew\nc\r\n"),
        ("one  \ntwo\n", "one\ntwo", "1\n2", "1\n2\n"),
        ("    if x:\n        y\n", "if x:\n    y\n", "if x:\n    z\n    w\n", "    if x:\n        z\n        w\n"),
        ("if x:\n    y\nend", "  if x:\n      y\n", "  if x:\n\n      z\n", "if x:\n\n    z\nend"),
        ("\tif x:\n\t\ty\n", "if x:\n\ty", "if x:\n\tz", "\tif x:\n\t\tz\n"),
        ("  a\n    b\n", "a\nb\n", "a\nc\n", "  a\n    c\n"),
        ("a $1 \\1", "$1", "\\g<0>", "a \\g<0> \\1"),
    ],
)
def test_differences_in_white_space_are_forgiven(text: str, old: str, new: str, expected: str) -> None:
    assert replaced(text, old, new) == expected


@pytest.mark.parametrize(
    ("text", "old", "count"),
    [
        ("a\n", "b", 0),
        ("if x:\n  y\n", "if x:\n        y\n    z\n", 0),
        (" x \n x \n", "x\n", 2),
        ("a\n", "   \n", 0),
    ],
)
def test_what_is_not_there_or_not_alone_is_counted(text: str, old: str, count: int) -> None:
    outcome = replace_text(text, old, "new")
    assert isinstance(outcome, NotReplaced)
    assert outcome.count == count


def test_an_exact_occurrence_is_preferred_to_a_similar_one() -> None:
    assert replaced("  x = 1\nx = 1\n", "\nx = 1\n", "\nx = 2\n") == "  x = 1\nx = 2\n"
