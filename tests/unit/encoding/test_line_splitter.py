from hypothesis import given
from hypothesis import strategies as st

from isthmus.encoding.line_splitter import END_BYTES, LineSplitter, LongLine


@given(st.lists(st.binary(max_size=20), max_size=10))
def test_lines_are_the_same_however_the_bytes_come(chunks: list[bytes]) -> None:
    splitter = LineSplitter(1000)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert lines == b"".join(chunks).split(b"\n")[:-1]


def test_of_a_line_that_is_too_long_the_ends_are_kept_and_the_next_line_counts() -> None:
    splitter = LineSplitter(100_000)
    chunk = b"x" * 65_536
    lines = splitter.feed(b'{"id":7,' + chunk)
    for _ in range(100):
        lines += splitter.feed(chunk)
    lines += splitter.feed(b'"id":8}\nnext\n')
    long, following = lines
    assert isinstance(long, LongLine)
    assert long.size == 101 * 65_536 + 15
    assert long.head.startswith(b'{"id":7,x')
    assert long.tail.endswith(b'x"id":8}')
    assert (len(long.head), len(long.tail)) == (END_BYTES, END_BYTES)
    assert following == b"next"
