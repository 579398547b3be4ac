import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.journal.port.notices import ALL, MAXIMUM_BYTES, NOTHING, JournalNotice, decode, encode

ids = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), max_size=5).map(tuple)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.builds(JournalNotice, ids, ids, ids, ids, st.booleans()))
def test_a_notice_arrives_as_it_was_sent(sender: str, notice: JournalNotice) -> None:
    assert decode(encode(sender, notice)) == (sender, notice)


def test_a_notice_says_on_the_wire_only_what_it_has() -> None:
    assert (
        encode("a", JournalNotice(("t1", "t2"), is_queue=True)) == '{"from":"a","events":["t1","t2"],"is_queue":true}'
    )
    assert encode("a", NOTHING) == '{"from":"a"}'


def test_a_notice_that_is_too_long_says_that_everything_may_have_changed() -> None:
    text = encode("a", JournalNotice(("é" * 100,) * 40))
    assert len(text.encode()) <= MAXIMUM_BYTES
    assert decode(text) == ("a", ALL)


@pytest.mark.parametrize("text", ["", "*", "[]", '{"from": 1}', '{"from":"a","of a later version":[1]}', "[" * 100_000])
def test_a_notice_that_this_version_cannot_read_says_the_same(text: str) -> None:
    assert decode(text)[1] == ALL


def test_parts_of_another_kind_are_left_out() -> None:
    assert decode('{"from":"a","events":["t1",2,null],"inboxes":"t2","is_queue":"yes"}') == (
        "a",
        JournalNotice(("t1",)),
    )
