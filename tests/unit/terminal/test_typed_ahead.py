"""Text that is typed while the agent works, and what becomes of it."""

from isthmus.terminal.typed_ahead import TypedAhead, TypedKey, WorkKey


def typed(text: str) -> TypedAhead:
    ahead = TypedAhead()
    ahead.take([TypedKey("c-m" if letter == "\r" else letter, letter) for letter in text])
    return ahead


def tab(ahead: TypedAhead) -> list[WorkKey]:
    return ahead.take([TypedKey("c-i", "\t")])


def test_tab_sends_all_that_was_typed_and_shows_it_until_it_has_arrived() -> None:
    ahead = typed("one\rtwo")
    assert tab(ahead) == [WorkKey.STEER]
    assert ahead.take_steering() == "one\ntwo"
    assert (ahead.sent, ahead.queue, ahead.draft) == (["one\ntwo"], [], "")
    ahead.arrived("something else")
    assert ahead.sent == ["one\ntwo"]
    ahead.arrived("one\ntwo")
    assert ahead.sent == []


def test_tab_without_text_does_nothing() -> None:
    assert tab(typed("  ")) == []
    assert tab(typed("")) == []


def test_what_was_not_taken_waits_for_the_end_before_the_others() -> None:
    ahead = typed("now")
    assert ahead.take_steering() == "now"
    ahead.take([TypedKey(letter, letter) for letter in "later"] + [TypedKey("c-m", "\r")])
    ahead.came_back("now")
    assert (ahead.sent, ahead.queue) == ([], ["now", "later"])


def test_after_a_turn_that_went_otherwise_everything_is_in_the_draft() -> None:
    ahead = typed("now")
    ahead.take_steering()
    ahead.take([TypedKey("x", "x"), TypedKey("c-m", "\r"), TypedKey("y", "y")])
    ahead.unqueue()
    assert (ahead.draft, ahead.queue, ahead.sent) == ("now\nx\ny", [], [])
