"""Positions of the port in other forms: every conversion can be reversed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ide.editor import Position, Range
from isthmus.ide.positions import (
    from_encoding,
    from_one_based,
    line_at,
    offset_at,
    one_based,
    ordered,
    to_encoding,
    within,
)
from isthmus.text.offsets import OffsetEncoding, encoded_length, offset_from_encoded, utf16_length

_LINE = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\r"), max_size=30)
_ENCODING = st.sampled_from(OffsetEncoding)


@given(_LINE, _ENCODING)
def test_a_length_is_what_the_encoding_itself_needs(line: str, encoding: OffsetEncoding) -> None:
    unit = {OffsetEncoding.UTF_8: 1, OffsetEncoding.UTF_16: 2, OffsetEncoding.UTF_32: 4}[encoding]
    name = encoding.value if encoding is OffsetEncoding.UTF_8 else f"{encoding.value}-le"
    assert encoded_length(line, encoding) == len(line.encode(name)) // unit


@given(_LINE, _ENCODING, st.data())
def test_every_character_is_found_again_in_every_encoding(
    line: str, encoding: OffsetEncoding, data: st.DataObject
) -> None:
    offset = data.draw(st.integers(0, len(line)))
    units = utf16_length(line[:offset])
    assert from_encoding(line, to_encoding(line, units, encoding), encoding) == units
    assert offset_from_encoded(line, encoded_length(line[:offset], encoding), encoding) == offset


@pytest.mark.parametrize(
    ("encoding", "character"), [(OffsetEncoding.UTF_8, 7), (OffsetEncoding.UTF_16, 4), (OffsetEncoding.UTF_32, 3)]
)
def test_a_place_behind_an_emoji_and_an_accent(encoding: OffsetEncoding, character: int) -> None:
    assert from_encoding("a😀é!", character, encoding) == 4
    assert to_encoding("a😀é!", 4, encoding) == character


@pytest.mark.parametrize("encoding", OffsetEncoding)
def test_places_outside_of_a_line_are_its_ends(encoding: OffsetEncoding) -> None:
    assert from_encoding("é😀", 99, encoding) == 3
    assert from_encoding("é😀", -1, encoding) == 0


def test_people_count_from_one() -> None:
    assert from_one_based(3, 1) == Position(2, 0)
    assert one_based(Position(2, 0)) == (3, 1)
    assert from_one_based(0, 0) == Position(0, 0)


def test_the_ends_of_a_range_are_put_in_order() -> None:
    assert ordered(Position(2, 0), Position(1, 9)) == Range(Position(1, 9), Position(2, 0))


def test_lines_and_offsets_of_a_text() -> None:
    text = "one\r\n😀two\nthree"
    assert line_at(text, 0) == (0, "one")
    assert line_at(text, 1) == (5, "😀two")
    assert line_at(text, 9) == (10, "three")
    assert offset_at(text, Position(1, 2)) == 6
    assert offset_at(text, Position(0, 99)) == 3


def test_a_range_is_cut_to_its_text() -> None:
    assert within("one\ntwo", Range(Position(5, 0), Position(0, 9))) == Range(Position(0, 3), Position(1, 3))
    assert within("a😀b", Range(Position(0, 2), Position(0, 3))) == Range(Position(0, 1), Position(0, 3))
