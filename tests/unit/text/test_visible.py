import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.visible import output_lines, visible, visible_line, visible_prose, with_ellipsis, without_escapes

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
BLANKS = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800]")
VISIBLE_FORMATS = re.compile("[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001345f]")
"""Characters of the category "format" that have a shape of their own."""
ANY_TEXT = st.text(st.characters() | st.sampled_from("\x1b[]\\\x07\r\n\t\x9b\x9d\u202e\u2066\ud800m2JK0;"))
WHOLE_TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))


@given(ANY_TEXT)
def test_no_control_character_gets_through(text: str) -> None:
    for cleaned in (visible(text), without_escapes(text), "\n".join(output_lines(text))):
        assert not CONTROLS.search(cleaned)
        cleaned.encode("utf-8")
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]", visible(text))


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp")) | st.sampled_from("\n\t")))
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    assert without_escapes(text) == text
    seen = INVISIBLE.sub("", text)
    assert visible_prose(seen) == seen
    seen = re.sub("[A-Za-z]", "", BLANKS.sub("", seen))
    assert visible(seen) == seen


def test_no_format_or_blank_of_unicode_is_hidden_in_text_to_approve() -> None:
    """Whatever Unicode adds to these categories is found here."""
    hidden = [
        f"U+{code:04X}"
        for code in range(0x110000)
        if unicodedata.category(character := chr(code)) in ("Cc", "Cf", "Zl", "Zp", "Zs")
        and character not in "\n\t \u3000"
        and not VISIBLE_FORMATS.match(character)
        and visible(f"a{character}b") == f"a{character}b"
    ]
    assert hidden == []


@given(st.text(st.characters(codec="utf-8") | st.sampled_from("\u200b\u200d\ufe0f\u3164\u00ad\U000e0041\U000e0101")))
def test_text_to_approve_has_no_invisible_characters(text: str) -> None:
    assert not INVISIBLE.search(visible(text))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm\u200b -rf", "rm\\u200b -rf"),
        ("pay\u2063pal", "pay\\u2063pal"),
        ("a\u3164b\uffa0c", "a\\u3164b\\uffa0c"),
        ("x\U000e0072\U000e006d", "x\\U000e0072\\U000e006d"),
        ("v\U000e0101", "v\\U000e0101"),
        ("\u2764\ufe0f", "\u2764\\ufe0f"),
        ("rm\u00a0-rf", "rm\\u00a0-rf"),
        ("a\u2800b", "a\\u2800b"),
        ("a\ufff9b\ufffac\ufffb", "a\\ufff9b\\ufffac\\ufffb"),
        ("a\u2003b", "a\\u2003b"),
        ("p\u0430ypal.py", "p\\u0430ypal.py"),
        ("\uff52m -rf x", "\\uff52m -rf x"),
        ("c\u03bfnfig \U0001d41am", "c\\u03bfnfig \\U0001d41am"),
        ("\u0441\u200bat", "\u0441\\u200bat"),
    ],
)
def test_invisible_characters_are_shown_in_text_to_approve(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "\u043e\u0442\u0447\u0451\u0442_final.txt",  # a Russian word beside a Latin one
        "JSON-\u0444\u0430\u0439\u043b",
        "\u0394x = \u03c3 + \u03bbmax",
        "na\u00efve caf\u00e9 \u0131\u015f\u0131k",
        "\u4f60\u597d.py",
        "\u00b5m",
    ],
)
def test_words_of_other_alphabets_stay_as_they_are(text: str) -> None:
    assert visible(text) == text


def test_a_word_of_a_megabyte_takes_no_longer_than_its_length() -> None:
    assert len(visible("a" * 1_000_000 + "\u0430")) == 1_000_006


def test_emoji_and_joined_scripts_stay_legible_in_prose() -> None:
    for text in (
        "\u2764\ufe0f",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
        "1\ufe0f\u20e3",
        "\u0645\u06cc\u200c\u062e",
    ):
        assert visible_prose(text) == text
    assert visible_prose("pay\u200dpal \u200b\u00ad") == "pay\\u200dpal \\u200b\\u00ad"


def test_hidden_characters_are_shown() -> None:
    assert visible("a\x1b[2Jb") == "a\u241b[2Jb"
    assert visible("\x9b31m") == "\\x9b31m"
    assert visible("exe.\u202egpj") == "exe.\\u202egpj"
    assert visible("one\r\ntwo\rthree") == "one\ntwo\u240dthree"
    assert visible_line("one\ntwo\t") == "one\u240atwo\u2409"
    assert visible("\ud800") == "\ufffd"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\after", "after"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1b(Btext", "text"),
        ("unfinished \x1b[3", "unfinished 3"),
    ],
)
def test_terminal_sequences_are_dropped_whole(text: str, plain: str) -> None:
    assert without_escapes(text) == plain


def test_a_redrawn_line_is_kept_in_its_last_version() -> None:
    assert output_lines(" 10%\r 50%\r100%\ndone\r\n\n") == ["100%", "done"]
    assert output_lines("") == []
    assert output_lines("a\tb") == ["a       b"]


def test_letters_with_marks_and_wide_characters_survive() -> None:
    text = unicodedata.normalize("NFD", "żółć") + " 漢字 👩"
    assert visible(text) == text
    assert visible_prose(text + "‍💻") == text + "‍💻"


@given(WHOLE_TEXT, st.integers(1, 20))
def test_a_long_text_is_cut_and_ends_with_an_ellipsis(text: str, longest: int) -> None:
    shown = with_ellipsis(text, longest)
    assert len(shown) == min(len(text), longest)
    assert shown == (text if len(text) <= longest else f"{text[: longest - 1]}…")
