"""Rows of a line: nothing is lost, no row is too wide, and a word is cut only where it is longer than a row."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from isthmus.terminal.screen.reflow import reflows, rows_above_cursor
from isthmus.terminal.screen.wrapping import NARROWEST, hanging_of, word_rows, wrapped

LINES = st.text(st.sampled_from("ab.,-_ \u6f22\u2019"), max_size=200)


@given(LINES, st.integers(20, 90), st.integers(0, 8))
def test_rows_keep_all_words_and_fit(line: str, room: int, hanging: int) -> None:
    rows = word_rows(line, room, hanging)
    assert "".join("".join(rows).split()) == "".join(line.split())
    assert all(cell_len(row) <= room for row in rows)
    assert all(row.startswith(" " * hanging) for row in rows[1:])
    narrow = {word for word in line.split() if word.isprintable() and "\u6f22" not in word}
    for above, below in pairwise(rows):
        if above.split() and below.split():
            joined = above.split()[-1] + below.split()[0]
            assert joined not in narrow or cell_len(joined) > room - hanging or above.split()[-1] in narrow


@given(LINES, st.integers(NARROWEST * 2, 90))
def test_a_styled_line_is_broken_where_its_text_is(line: str, room: int) -> None:
    rows = wrapped(Text(line, "bad"), room)
    expected = [line] if cell_len(line) <= room else word_rows(line, room, hanging_of(line, room))
    assert [row.plain for row in rows] == expected


@pytest.mark.parametrize(
    ("line", "hanging"),
    [
        ("plain words alone", 0),
        ("! a notice", 2),
        ("  \u2717 an error", 4),
        ("/chat resume NAME  Go on from a chat", 19),
        ("12  a choice", 4),
        ("e  Edit first  opens it", 15),
        ("a name that is wider than half a row of it  what it does", 4),
    ],
)
def test_rows_hang_below_the_text_behind_a_sign_or_in_the_last_column(line: str, hanging: int) -> None:
    assert hanging_of(line, 60) == hanging


def test_the_rows_above_a_cursor_are_counted_in_a_narrower_window() -> None:
    assert rows_above_cursor([80, 0, 20], 20, 80) == 2
    assert rows_above_cursor([80, 0, 60], 60, 40) == 2 + 1 + 1
    # Behind a full row the cursor stays in it.
    assert rows_above_cursor([40], 40, 40) == 0
    assert rows_above_cursor([41], 40, 40) == 1


def test_terminals_that_cut_rows_are_known() -> None:
    assert reflows({"TERM": "xterm-256color"})
    assert reflows({"TERM": "tmux-256color", "XTERM_VERSION": "XTerm(390)", "TMUX": "/tmp/tmux"})
    for variables in ({"XTERM_VERSION": "XTerm(390)"}, {"STY": "1.pts"}, {"TERM": "linux"}):
        assert not reflows(variables)
