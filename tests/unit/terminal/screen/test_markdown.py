import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from isthmus.terminal.screen.highlighting import highlighter
from isthmus.terminal.screen.markdown import Layout, MarkdownStream
from isthmus.terminal.screen.pieces import Piece

WORDS = st.text(st.sampled_from("ab \n`*#-1.) >漢\r\t~_\x1b|[]("), max_size=120)


def written(increments: list[str], width: int | None = 40, *, is_styled: bool = False) -> list[Piece]:
    stream = MarkdownStream(Layout(width, is_styled, cell_len, draws_tables=is_styled, highlighter=highlighter))
    pieces = [piece for increment in increments for piece in stream.feed(increment)]
    pieces += stream.finish()
    joined: list[Piece] = []
    for piece in pieces:
        if joined and joined[-1][1:] == piece[1:]:
            joined[-1] = piece._replace(text=joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def plain(increments: list[str], width: int | None = 40, *, is_styled: bool = False) -> str:
    return "".join(piece.text for piece in written(increments, width, is_styled=is_styled))


@given(st.lists(WORDS, max_size=8), st.booleans(), st.sampled_from([None, 20, 40]))
def test_it_does_not_matter_how_the_text_is_cut_into_increments(
    increments: list[str], is_styled: bool, width: int | None
) -> None:
    whole = written(["".join(increments)], width, is_styled=is_styled)
    assert written(increments, width, is_styled=is_styled) == whole


@given(st.lists(WORDS, max_size=8))
def test_without_styles_nothing_but_space_is_changed(increments: list[str]) -> None:
    text = "".join(increments).replace("\x1b", "\u241b").replace("\r\n", "\n")
    expected = "".join(text.replace("\r", "\u240d").split())
    # A carriage return at the very end of the text is not printed: no next character decides its meaning.
    assert "".join(plain(increments).split()) == expected.removesuffix("\u240d" if text.endswith("\r") else "\0")


@given(st.text(st.sampled_from("ab cd 漢"), max_size=200))
def test_no_line_is_wider_than_the_screen(text: str) -> None:
    for line in plain([text], 20).split("\n"):
        assert cell_len(line.rstrip()) <= 20 or " " not in line.strip()


@given(st.lists(WORDS, max_size=8))
def test_what_is_flushed_early_is_not_printed_again(increments: list[str]) -> None:
    stream = MarkdownStream(Layout(None, False, cell_len))
    pieces = [piece for increment in increments for piece in (*stream.feed(increment), *stream.flush())]
    pieces += stream.finish()
    assert "".join(piece.text for piece in pieces) == plain(increments, None)


def test_words_are_wrapped_and_list_items_hang() -> None:
    assert plain(["- one two three four five six"], 20) == "- one two three four\n  five six\n"
    assert plain(["alpha beta gamma delta"], 12) == "alpha beta\ngamma delta\n"


def test_a_word_is_held_back_until_it_is_complete_or_flushed() -> None:
    stream = MarkdownStream(Layout(40, False, cell_len))
    assert stream.feed("one tw") == [Piece("one")]
    assert stream.flush() == [Piece(" tw")]
    assert stream.feed("o three") == [Piece("o")]


def test_empty_lines_around_the_text_are_dropped_and_others_are_one() -> None:
    assert plain(["\n\n  \none\n\n\n\ntwo\n\n"]) == "one\n\ntwo\n"


def test_code_is_neither_wrapped_nor_thinned_out() -> None:
    code = "```python\nx = 'a very long line of code that is wider than the screen'\n\n\n\ny = 2\n```\n"
    assert plain([code], 20) == code


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a **b c** d", [Piece("a "), Piece("b", "strong"), Piece(" "), Piece("c", "strong"), Piece(" d\n")]),
        ("run `ls -l` now", [Piece("run "), Piece("ls", "code"), Piece(" "), Piece("-l", "code"), Piece(" now\n")]),
        ("## Title", [Piece("Title", "heading"), Piece("\n")]),
        ("2 ** 3 and *args", [Piece("2 ** 3 and *args\n")]),
        ("#include", [Piece("#include\n")]),
        (
            "```\ncode\n```",
            [
                Piece("───", "fence"),
                Piece("\n"),
                Piece("code", "code"),
                Piece("\n"),
                Piece("───", "fence"),
                Piece("\n"),
            ],
        ),
    ],
)
def test_markdown_is_styled_line_by_line(text: str, pieces: list[Piece]) -> None:
    assert written([text], is_styled=True) == pieces


def test_a_link_shows_its_text_and_its_address() -> None:
    url = "https://example.org/a"
    assert written([f"see [the docs]({url})."], is_styled=True) == [
        Piece("see "),
        Piece("the", "link", url),
        Piece(" "),
        Piece("docs", "link", url),
        Piece(" ("),
        Piece(url, "link", url),
        Piece(").\n"),
    ]
    assert written([f"[{url}]({url})"], is_styled=True) == [Piece(url, "link", url), Piece("\n")]
    assert written(["[run](javascript:x)"], is_styled=True)[0] == Piece("run", "link")


@pytest.mark.parametrize("text", ["a[0] = [1, 2]", "[ ] to do", "[x](", "[a](b c)", "[[x]", "[]()", "see [1], [2]."])
def test_brackets_that_are_not_links_stay_as_they_are(text: str) -> None:
    assert plain([text], is_styled=True) == f"{text}\n"


def coloured(text: str) -> list[Piece]:
    stream = MarkdownStream(Layout(60, True, cell_len, highlighter=highlighter))
    return [piece for piece in (*stream.feed(text), *stream.finish()) if piece.text.strip()]


def test_code_is_highlighted_line_by_line_without_its_fence() -> None:
    pieces = coloured('Look:\n```python\ndef f():\n    return "x"  # why\n```\nDone.')
    assert "```" not in "".join(piece.text for piece in pieces)
    assert Piece("─── python", "fence") in pieces
    assert Piece("def", "keyword") in pieces
    assert Piece('"x"', "string") in pieces
    assert Piece("# why", "comment") in pieces


def test_a_string_over_several_lines_keeps_its_colour() -> None:
    pieces = coloured('```python\nx = """\nreturn\n"""\nreturn 1\n```')
    assert Piece("return", "string") in pieces
    assert Piece("return", "keyword") in pieces


def test_code_in_an_unknown_language_has_one_colour() -> None:
    assert Piece("return x", "code") in coloured("```no-such-language\nreturn x\n```")
    assert Piece("return x", "code") in coloured("```\nreturn x\n```")


@given(st.text(st.sampled_from("ab\"'#/*\n (){}<>=\\"), max_size=80), st.sampled_from(["python", "c", "html", "css"]))
def test_highlighting_changes_no_character_of_the_code(code: str, language: str) -> None:
    stream = MarkdownStream(Layout(None, True, cell_len, highlighter=highlighter))
    shown = "".join(piece.text for piece in (*stream.feed(f"```{language}\nfirst\n{code}\nlast"), *stream.finish()))
    assert shown == f"─── {language}\nfirst\n{code}\nlast\n"
