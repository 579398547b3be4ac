"""Frames that the connection writes itself: the same bytes as the library's."""

import pytest
from websockets.frames import Frame, Opcode

from isthmus.ide.claude.bounded_connection import text_frame


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 100_000])
def test_a_frame_is_the_one_that_the_library_would_write(size: int) -> None:
    data = b"x" * size
    assert text_frame(data) == Frame(Opcode.TEXT, data).serialize(mask=False)
