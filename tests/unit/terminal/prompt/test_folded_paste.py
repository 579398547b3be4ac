"""Long pasted text: a short stand-in for it in the prompt, and the text itself in what is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.terminal.prompt.folded_paste import MAXIMUM_CHARACTERS, MAXIMUM_LINES, FoldedPastes

LONG = "\n".join(f"line {number}" for number in range(1, 502))


def test_a_long_paste_is_folded_and_sent_whole() -> None:
    pastes = FoldedPastes()
    assert (shown := pastes.fold(LONG)) == "[Pasted text 1: 501 lines]"
    assert pastes.unfold(f"Why does this fail? {shown} Thanks") == f"Why does this fail? {LONG} Thanks"


def test_one_long_line_tells_its_characters() -> None:
    assert FoldedPastes().fold("x" * 2345) == "[Pasted text 1: 2,345 characters]"


@pytest.mark.parametrize("text", ["short", "\n" * (MAXIMUM_LINES - 1), "y" * MAXIMUM_CHARACTERS])
def test_a_short_paste_stays_as_it_is(text: str) -> None:
    assert FoldedPastes().fold(text) == text


def test_the_same_text_gets_the_same_stand_in_and_another_text_another() -> None:
    pastes = FoldedPastes()
    assert pastes.fold(LONG) == pastes.fold(LONG)
    assert pastes.fold(LONG + "!") == "[Pasted text 2: 501 lines]"


def test_a_stand_in_that_was_typed_and_never_pasted_is_text() -> None:
    assert FoldedPastes().unfold("[Pasted text 1: 501 lines]") == "[Pasted text 1: 501 lines]"


def test_a_paste_that_contains_stand_ins_is_not_unfolded_again() -> None:
    pastes = FoldedPastes()
    first = pastes.fold(LONG)
    second = pastes.fold(f"{first}\n{LONG}\n{first}")
    assert pastes.unfold(f"{second} {first}") == f"{first}\n{LONG}\n{first} {LONG}"


def test_the_stand_in_before_the_cursor_is_found_as_one() -> None:
    pastes = FoldedPastes()
    shown = pastes.fold(LONG)
    assert pastes.before(f"See {shown}") == shown
    assert pastes.before(f"See {shown} ") == ""
    assert pastes.before("See [Pasted text 9: 501 lines]") == ""


@given(st.lists(st.text(st.sampled_from("a[] \nPasted text1:,"), max_size=3000), max_size=5))
def test_what_is_sent_is_what_was_pasted(texts: list[str]) -> None:
    pastes = FoldedPastes()
    shown = [pastes.fold(text) for text in texts]
    assert [pastes.unfold(text) for text in shown] == texts
