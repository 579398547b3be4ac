from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.visible import with_ellipsis

TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))


@given(TEXTS, st.integers(1, 20))
def test_a_long_text_is_cut_to_its_length_and_shows_that_it_was(text: str, longest: int) -> None:
    shown = with_ellipsis(text, longest)
    assert len(shown) == min(len(text), longest)
    assert shown == (text if len(text) <= longest else f"{text[: longest - 1]}…")
