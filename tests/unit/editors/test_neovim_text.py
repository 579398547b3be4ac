import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.editors.neovim.text import BufferText
from isthmus.errors import DecodeError

texts = st.text(st.sampled_from("ab\n\r\ufeff\0é😀")) | st.lists(st.sampled_from(["a", "", "é"])).map("\r\n".join)


@given(texts)
@example("a\r\n")
@example("\ufeff\ufeffa")
def test_a_text_goes_through_a_buffer_without_losing_anything(text: str) -> None:
    body = text.removeprefix("\ufeff")
    expected = text if body not in ("\n", "\r\n") else text.removesuffix(body)
    assert BufferText.from_neovim(BufferText.of(text).to_neovim()).text() == expected


@given(texts)
def test_no_line_holds_what_neovim_refuses_in_a_line(text: str) -> None:
    lines = BufferText.of(text).lines
    assert lines
    assert not any("\n" in line for line in lines)


def test_line_ends_are_those_of_dos_only_when_all_are() -> None:
    assert BufferText.of("a\r\nb\r\n") == BufferText(("a", "b"), "dos")
    assert BufferText.of("a\r\nb\n") == BufferText(("a\r", "b"), "unix")
    assert BufferText.of("a\r") == BufferText(("a\r",), "unix", endofline=False)


def test_the_format_that_the_user_chose_is_what_is_written() -> None:
    assert BufferText(("a", "b"), "mac").text() == "a\rb\r"
    assert BufferText(("a", "b"), "dos", endofline=False, bomb=True).text() == "\ufeffa\r\nb"


def test_something_else_than_a_buffer_is_refused() -> None:
    with pytest.raises(DecodeError, match="lines"):
        BufferText.from_neovim({"lines": "text"})
