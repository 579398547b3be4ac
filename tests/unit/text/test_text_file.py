import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.text_file import (
    BinaryContentError,
    Newlines,
    UnencodableTextError,
    decode_text,
    newlines_of,
    with_newlines_of,
)

LINES = st.lists(st.sampled_from(["", "a", "b", "c", "\f", "é"]), max_size=30)


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"plain\n", "plain\n", "utf-8"),
        ("Grüße\r\n".encode(), "Grüße\r\n", "utf-8"),
        (codecs.BOM_UTF8 + "é".encode(), "é", "utf-8"),
        (codecs.BOM_UTF16_LE + "é\n".encode("utf-16-le"), "é\n", "utf-16-le"),
        (codecs.BOM_UTF16_BE + "é\n".encode("utf-16-be"), "é\n", "utf-16-be"),
        (codecs.BOM_UTF32_LE + "é".encode("utf-32-le"), "é", "utf-32-le"),
        (b"caf\xe9 \x80\n", "café \x80\n", "latin-1"),
        (b"", "", "utf-8"),
    ],
)
def test_text_is_read_in_its_encoding_and_written_back_byte_for_byte(data: bytes, text: str, encoding: str) -> None:
    file = decode_text(data)
    assert (file.text, file.form.encoding) == (text, encoding)
    assert file.form.encode(file.text) == data


@given(st.binary())
def test_whatever_is_taken_for_text_keeps_every_byte(data: bytes) -> None:
    try:
        file = decode_text(data)
    except BinaryContentError:
        return
    assert file.form.encode(file.text) == data


@pytest.mark.parametrize(
    "data", [b"\x89PNG\r\n\x1a\n\0\0", b"a\0b", b"\xff\x01\x02", codecs.BOM_UTF16_LE + b"\x00\xd8"]
)
def test_binary_content_is_refused(data: bytes) -> None:
    with pytest.raises(BinaryContentError):
        decode_text(data)


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    form = decode_text(b"caf\xe9").form
    with pytest.raises(UnencodableTextError, match=r"latin-1.*U\+2026 \(at offset 3"):
        form.encode("abc…")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", Newlines.NONE),
        ("a\rb", Newlines.NONE),
        ("a\n", Newlines.LF),
        ("a\r\nb\r\n", Newlines.CRLF),
        ("a\r\nb\n", Newlines.MIXED),
    ],
)
def test_newlines_are_told_apart(text: str, expected: Newlines) -> None:
    assert newlines_of(text) is expected


@given(LINES, LINES)
def test_a_crlf_text_stays_one_whatever_newlines_the_new_text_has(old: list[str], new: list[str]) -> None:
    old_text = "\r\n".join([*old, "", ""])
    assert with_newlines_of(old_text, "\n".join(new)) == "\r\n".join(new)
    assert with_newlines_of(old_text, "\r\n".join(new)) == "\r\n".join(new)


def test_in_a_mixed_text_every_line_that_stays_keeps_its_own_newline() -> None:
    old = "one\r\ntwo\nthree\r\nfour\n"
    assert with_newlines_of(old, "one\ntwo\nnew\nthree\nfour\n") == "one\r\ntwo\nnew\nthree\r\nfour\n"
    assert with_newlines_of(old, "one\nnew\nthree\n") == "one\r\nnew\r\nthree\r\n"


@given(st.lists(st.sampled_from(["a\n", "b\r\n", "\n", "\r\n", "c\r\n"]), min_size=1))
def test_a_mixed_text_that_nobody_changed_comes_back_as_it_was(lines: list[str]) -> None:
    old = "".join(lines)
    assert with_newlines_of(old, old.replace("\r\n", "\n")) == (old if "\r\n" in old else old.replace("\r\n", "\n"))
