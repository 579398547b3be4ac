import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.development_tool import AgentThought
from isthmus.text.thoughts import ThoughtStream

TWO = "**Weighing**\n\nOne way is short.\n\n**Deciding**\n\nThe short one."
THOUGHTS = [AgentThought("Weighing", "One way is short."), AgentThought("Deciding", "The short one.")]


def fed(increments: list[str]) -> tuple[list[AgentThought], list[str]]:
    """Return the thoughts, and the subjects that were shown meanwhile."""
    stream = ThoughtStream()
    parts = [part for increment in increments for part in stream.feed(increment)]
    last = stream.finish()
    thoughts = [part for part in parts if isinstance(part, AgentThought)]
    return [*thoughts, *([last] if last is not None else [])], [part for part in parts if isinstance(part, str)]


def test_each_heading_begins_a_thought_and_is_shown_while_it_lasts() -> None:
    assert fed([TWO]) == (THOUGHTS, ["Weighing", "Deciding"])
    assert fed(list(TWO)) == (THOUGHTS, ["Weighing", "Deciding"])


def test_a_heading_is_known_before_its_thought_is_over() -> None:
    stream = ThoughtStream()
    assert list(stream.feed("**Weigh")) == []
    assert list(stream.feed("ing** ")) == ["Weighing"]


def test_thinking_without_headings_shows_its_sentences() -> None:
    thoughts, shown = fed(["First ", "I look.", " Then", "\nI decide", " about it."])
    assert thoughts == [AgentThought("First I look. Then", "First I look. Then\nI decide about it.")]
    assert shown == ["First I look.", "I decide about it."]


def test_bold_text_within_a_line_begins_no_thought() -> None:
    text = "**One**\nuse **two** or\n**three** here\n"
    assert fed([text])[0] == [AgentThought("One", "use **two** or\n**three** here")]


@pytest.mark.parametrize("text", ["", "\n\n", "  "])
def test_blank_thinking_is_not_a_thought(text: str) -> None:
    assert fed([text]) == ([], [])


@given(st.lists(st.text(st.sampled_from("ab*\n ."), max_size=20), max_size=6))
def test_thoughts_do_not_depend_on_how_the_text_is_cut(increments: list[str]) -> None:
    assert fed(increments)[0] == fed(["".join(increments)])[0]
