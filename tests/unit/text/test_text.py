import codecs
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.diff import line_opcodes, split_lines, unified_diff
from isthmus.text.offsets import offset_from_utf16, utf16_length
from isthmus.text.text_file import (
    BinaryContentError,
    Newlines,
    UnencodableTextError,
    decode_text,
    newlines_of,
    with_newlines_of,
)
from isthmus.text.visible import with_ellipsis

TEXTS = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)))
LINES = st.lists(st.sampled_from(["", "a", "b", "c", "\f", "é"]), max_size=30)


@given(TEXTS, st.integers(1, 20))
def test_a_long_text_is_cut_to_its_length_and_shows_that_it_was(text: str, longest: int) -> None:
    shown = with_ellipsis(text, longest)
    assert len(shown) == min(len(text), longest)
    assert shown == (text if len(text) <= longest else f"{text[: longest - 1]}…")


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


@given(TEXTS)
def test_lines_joined_are_the_text(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith("\n") for line in lines[:-1])


@given(LINES, LINES)
def test_opcodes_lead_from_the_old_lines_to_the_new_without_gaps(old: list[str], new: list[str]) -> None:
    result: list[str] = []
    old_position = new_position = 0
    for tag, start, end, new_start, new_end in line_opcodes(old, new):
        assert (start, new_start) == (old_position, new_position)
        assert (tag == "equal") == (old[start:end] == new[new_start:new_end])
        result += new[new_start:new_end]
        old_position, new_position = end, new_end
    assert result == new
    assert old_position == len(old)


@given(old=LINES, new=LINES, old_ends=st.booleans(), new_ends=st.booleans())
def test_patch_makes_the_new_text_from_the_old_and_the_diff(
    tmp_path_factory: pytest.TempPathFactory, old: list[str], new: list[str], old_ends: bool, new_ends: bool
) -> None:
    old_text, new_text = "\n".join(old) + "\n" * old_ends, "\n".join(new) + "\n" * new_ends
    if not old_text or not new_text or old_text == new_text:
        return
    folder = tmp_path_factory.mktemp("patch")
    (folder / "f").write_bytes(old_text.encode())
    diff = unified_diff(old_text, new_text, "f")
    subprocess.run(["git", "apply", "-p1", "--whitespace=nowarn"], input=diff.encode(), cwd=folder, check=True)
    assert (folder / "f").read_bytes() == new_text.encode()


def test_a_new_file_is_a_diff_from_nothing() -> None:
    assert unified_diff(None, "a\n", "src/a.txt") == "--- /dev/null\n+++ b/src/a.txt\n@@ -0,0 +1 @@\n+a\n"


def test_equal_texts_have_an_empty_diff() -> None:
    assert unified_diff("a", "a", "f") == ""


def test_a_missing_final_newline_is_marked() -> None:
    diff = unified_diff("a\nb", "a\nb\n", "f")
    assert diff.endswith("-b\n\\ No newline at end of file\n+b\n")


def test_few_changes_in_a_huge_file_give_a_small_diff() -> None:
    old = [f"line {index}\n" for index in range(200_000)]
    new = list(old)
    new[10] = "first change\n"
    new[100_000:100_000] = ["inserted\n"]
    del new[190_000]
    diff = unified_diff("".join(old), "".join(new), "f")
    assert diff.count("\n@@ ") == 3
    assert len(diff) < 1_000


def test_the_diff_of_huge_texts_without_unique_lines_is_found_at_once() -> None:
    old = "a\nb\n" * 60_000
    new = "b\na\na\n" * 40_000
    assert "The diff is cut here" not in unified_diff(old, new, "f")


def test_a_diff_that_is_too_long_says_where_it_is_cut() -> None:
    diff = unified_diff("", "x" * 99 + "\n" + ("y" * 99 + "\n") * 20_000, "f")
    assert len(diff) < 1_100_000
    assert diff.endswith("\\ The diff is cut here: it has more than 1000000 characters.\n")


@given(TEXTS, st.integers(0, 50))
def test_utf16_offsets_lead_back_to_code_points(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    units = utf16_length(text[:offset])
    assert units == len(text[:offset].encode("utf-16-le")) // 2
    assert offset_from_utf16(text, units) == offset


def test_an_offset_inside_a_surrogate_pair_means_its_start() -> None:
    assert utf16_length("a😀b") == 4
    assert [offset_from_utf16("a😀b", units) for units in range(6)] == [0, 1, 1, 2, 3, 3]
