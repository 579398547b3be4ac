import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from isthmus.terminal.screen.markdown import Layout, MarkdownStream
from isthmus.terminal.screen.pieces import Piece, safe_link

TABLE = """| Tool | What it does | Zeit |
|:-----|:------------:|-----:|
| `grep` | finds **text** in files | 3 |
| 漢字 | [docs](https://example.org/d) | 14 |
"""


def pieces_of(text: str, width: int | None = 60, *, is_styled: bool = True, is_ascii: bool = False) -> list[Piece]:
    stream = MarkdownStream(Layout(width, is_styled, cell_len, draws_tables=True, is_ascii=is_ascii))
    return [*stream.feed(text), *stream.finish()]


def plain(text: str, width: int | None = 60, *, is_styled: bool = True, is_ascii: bool = False) -> str:
    return "".join(piece.text for piece in pieces_of(text, width, is_styled=is_styled, is_ascii=is_ascii))


def test_the_columns_of_a_table_are_aligned_also_with_wide_characters() -> None:
    assert plain(f"See:\n\n{TABLE}\nDone.") == (
        "See:\n"
        "\n"
        "Tool │         What it does         │ Zeit\n"
        "─────┼──────────────────────────────┼─────\n"
        "grep │     finds text in files      │    3\n"
        "漢字 │ docs (https://example.org/d) │   14\n"
        "\nDone.\n"
    )


def test_a_table_is_held_back_until_its_last_row() -> None:
    stream = MarkdownStream(Layout(60, True, cell_len, draws_tables=True))
    assert stream.feed(TABLE) == []
    assert stream.flush() == []
    shown = "".join(piece.text for piece in stream.feed("\nAfter it"))
    assert shown.startswith("Tool │")
    assert "14\n" not in shown.partition("漢字")[0]


def test_cells_that_do_not_fit_are_wrapped_at_words() -> None:
    text = "| a | b |\n|---|---|\n| one two three four five | six seven eight nine ten |\n| x | y |\n"
    assert plain(text, 30, is_ascii=True) == (
        "a             | b\n"
        "--------------+---------------\n"
        "one two three | six seven\n"
        "four five     | eight nine ten\n"
        "--------------+---------------\n"
        "x             | y\n"
    )


def test_rows_of_a_table_that_is_too_narrow_become_lists() -> None:
    text = "| name | size | age |\n|---|---|---|\n| a.py | 10 | 2 |\n| b.py | 20 | 3 |\n"
    assert plain(text, 20) == "name: a.py\nsize: 10\nage: 2\n\nname: b.py\nsize: 20\nage: 3\n"


@pytest.mark.parametrize(
    "text",
    ["| not a table\n", "|a|\n|b|\n", "|a|b|\n|---|\n", "||\n", "|x", "   |y\n   |z\n"],
)
def test_text_that_only_begins_like_a_table_stays_as_it_is(text: str) -> None:
    assert plain(text).split() == text.split()


def test_without_a_width_a_table_stays_as_the_model_wrote_it() -> None:
    assert plain(TABLE, None, is_styled=False) == TABLE


@given(
    st.lists(st.lists(st.text("ab 漢|`*[]\\", max_size=20), min_size=1, max_size=5), min_size=1, max_size=5),
    st.integers(20, 90),
    st.booleans(),
)
def test_no_line_of_a_table_is_wider_than_the_screen(rows: list[list[str]], width: int, is_styled: bool) -> None:
    head, *others = [f"| {' | '.join(cell.replace('|', '') or 'x' for cell in row)} |" for row in rows]
    count = head.count("|") - 1
    text = "\n".join((head, "|" + "---|" * count, *others))
    for line in plain(text, width, is_styled=is_styled).splitlines():
        assert cell_len(line) <= width


def test_a_table_of_many_rows_ends_and_loses_nothing() -> None:
    rows = "".join(f"| {number} |\n" for number in range(5_000))
    shown = plain(f"| n |\n|---|\n{rows}").split()
    assert [word for word in shown if word.isdigit()] == [str(number) for number in range(5_000)]


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("https://example.org/a?b=c#d", True),
        ("HTTP://example.org", True),
        ("file:///tmp/a.py", True),
        ("javascript:alert(1)", False),
        ("ssh://host", False),
        ("vscode://file/etc", False),
        ("https://example.org/\x1b]0;x", False),
        ("https://example.org/\u202e", False),
        ("http://[", False),
        ("relative/path.md", False),
    ],
)
def test_only_plain_web_and_file_addresses_become_links(url: str, is_safe: bool) -> None:
    assert safe_link(url) == (url if is_safe else "")
