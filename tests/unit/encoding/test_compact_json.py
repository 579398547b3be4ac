"""The compact encoder, whose judge is the standard library's encoder."""

import enum
import json
import math
from collections.abc import Callable
from json import encoder as standard
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.compact_json import compact_encoder


class Word(enum.StrEnum):
    """A text with a name, as many values in events are."""

    ONE = "one"


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.sampled_from(Word),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers() | st.none(), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_every_value_is_encoded_as_by_the_standard_library(value: Any, ensure_ascii: bool) -> None:
    expected = json.dumps(value, ensure_ascii=ensure_ascii, separators=(",", ":"))
    assert compact_encoder(ensure_ascii=ensure_ascii)(value) == expected


@pytest.mark.parametrize("value", [math.nan, [math.inf], {"a": -math.inf}])
def test_numbers_that_json_lacks_are_refused_on_request(value: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        compact_encoder(allow_nan=False)(value)


def test_what_is_not_json_is_refused() -> None:
    circular: list[Any] = []
    circular.append(circular)
    with pytest.raises(TypeError, match="not JSON serializable"):
        compact_encoder()({"a": object()})
    with pytest.raises(TypeError, match="keys must be"):
        compact_encoder()({(1, 2): 3})
    with pytest.raises(RecursionError):
        compact_encoder()(circular)


def _other(*arguments: object) -> Callable[[object, int], tuple[str]]:
    """Return a function that makes another text of each value."""
    del arguments

    def encode(value: object, level: int) -> tuple[str]:
        del value, level
        return ("other",)

    return encode


@pytest.mark.parametrize("made", [None, _other])
def test_a_python_with_another_c_encoder_is_served_by_the_plain_one(
    made: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(standard, "c_make_encoder", made)
        encode = compact_encoder()
    assert encode({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'
