import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.codec import MAXIMUM_DEPTH
from isthmus.encoding.json_text import JsonError, decode, decode_any_text, encode

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_encoded_is_decoded_again(value: Any) -> None:
    assert decode(encode(value)) == value


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_fits_on_one_line_of_any_reader(text: str) -> None:
    encoded = encode({"text": text})
    assert len(encoded.decode().splitlines()) == 1
    assert json.loads(encoded) == {"text": text}


def test_whole_numbers_stay_whole_and_numbers_that_json_lacks_become_null() -> None:
    value = {"id": 2**63 + 1, "one": 1, "half": 0.5, "bad": [math.nan, {"a": math.inf}, (-math.inf,)]}
    assert encode(value) == b'{"id":9223372036854775809,"one":1,"half":0.5,"bad":[null,{"a":null},[null]]}'


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_depth_is_limited(opening: bytes) -> None:
    closing = b"]" if opening == b"[" else b"}"
    decode(opening * MAXIMUM_DEPTH + b"1" + closing * MAXIMUM_DEPTH)
    for depth in (MAXIMUM_DEPTH + 1, 100_000):
        with pytest.raises(JsonError, match="nested"):
            decode(opening * depth + b"1" + closing * depth)
    decode(b"[" + b"[1]," * 1000 + b"[]]")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"nul", b"\xff", b"NaN", b"-Infinity", b'"\\ud800"', b'{"\\uDC00": 1}', b"1" * 5000, b"{}{}", b"1e999"],
)
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(JsonError, match="expected"):
        decode(body)


@pytest.mark.parametrize("text", ['{"a": [1]}', ' {"a":[1]}', '{"a":[1]}\r\n', '\t{"a":[1]}\n '])
def test_spaces_around_a_value_are_allowed(text: str) -> None:
    assert decode(text.encode()) == decode_any_text(text) == {"a": [1]}
    with pytest.raises(JsonError):
        decode_any_text(text + "]")


def test_a_refusal_does_not_speak_of_python() -> None:
    with pytest.raises(JsonError) as refused:
        decode(b"1" * 5000)
    assert "sys." not in str(refused.value)


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert decode(b'\xef\xbb\xbf{"id": 1}') == {"id": 1}


def test_surrogate_pairs_are_characters() -> None:
    assert decode(b'"\\ud83d\\ude00"') == "\U0001f600"
