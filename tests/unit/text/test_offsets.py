from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.offsets import offset_from_utf16, utf16_length

TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))


@given(TEXTS, st.integers(0, 50))
def test_utf16_offsets_lead_back_to_code_points(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    units = utf16_length(text[:offset])
    assert units == len(text[:offset].encode("utf-16-le")) // 2
    assert offset_from_utf16(text, units) == offset


def test_an_offset_inside_a_surrogate_pair_means_its_start() -> None:
    assert utf16_length("a😀b") == 4
    assert [offset_from_utf16("a😀b", units) for units in range(6)] == [0, 1, 1, 2, 3, 3]
