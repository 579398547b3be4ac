"""The terminal of the tests against pyte's own screen."""

import pyte
from hypothesis import given
from hypothesis import strategies as st

from support.terminal_screen import TerminalScreen

TEXTS = st.text(
    st.sampled_from("ab \u2502\u2500\u203a\u4e2d\u00e9e\u0301\u200b\U0001f600\r\n\t\b\x0e\x0f\x7f"), max_size=30
)
SEQUENCES = st.sampled_from([
    "[H", "[3;5H", "[K", "[1J", "[2J", "[31m", "[0m", "[1;7m", "[A", "[2L", "[P", "[4h", "[4l", "[?7l", "[?7h",
    "(0", "(B", "[3@", "7", "8", "[r", "[2;4r",
]).map("\x1b".__add__)  # fmt: skip


@given(st.lists(TEXTS | SEQUENCES, max_size=30))
def test_a_screen_shows_what_pytes_own_shows(pieces: list[str]) -> None:
    ours, theirs = TerminalScreen(12, 5), pyte.Screen(12, 5)
    for screen in (ours, theirs):
        stream = pyte.Stream(screen)
        for piece in pieces:
            stream.feed(piece)
    assert (ours.cursor.x, ours.cursor.y, ours.cursor.attrs) == (theirs.cursor.x, theirs.cursor.y, theirs.cursor.attrs)
    for row in range(5):
        cells = [[screen.buffer[row][column] for column in range(12)] for screen in (ours, theirs)]
        assert cells[0] == cells[1]


def test_a_wide_character_fills_two_columns_and_is_shown_once() -> None:
    ours, theirs = TerminalScreen(12, 2), pyte.Screen(12, 2)
    for screen in (ours, theirs):
        pyte.Stream(screen).feed("a\u4e2db \U0001f600c")
    assert ours.display == theirs.display == ["a\u4e2db \U0001f600c    ", " " * 12]


def test_text_after_a_variation_selector_is_drawn() -> None:
    screen = TerminalScreen(12, 1)
    pyte.Stream(screen).feed("a\u2714\ufe0fb")
    assert screen.display == ["a\u2714b         "]
