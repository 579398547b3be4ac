"""Text of an agent before a call, by the events that came."""

from isthmus.agent.session.said_text import LONGEST_SAID, SaidText
from isthmus.models.port.base import Message, Text


def test_parts_of_one_text_are_one_and_the_next_text_replaces_them() -> None:
    said = SaidText()
    said.take_part("a", "one ")
    said.take_part("a", "two")
    assert said.text == "one two"
    said.take_part("b", "three")
    assert said.text == "three"
    said.take_whole("three")  # the same text, whole
    assert said.text == "three"
    said.take_part("c", "x" * (LONGEST_SAID + 5))
    assert len(said.text) == LONGEST_SAID


def test_what_was_said_before_a_call_is_not_about_the_next_one() -> None:
    said = SaidText()
    said.take_part("a", "I read it.")
    said.end_call()
    assert said.text == ""


def test_a_models_message_says_what_it_says_until_the_next_one() -> None:
    said = SaidText()
    said.take_part("a", "I wri")
    said.take_reply(Message("assistant", (Text("I write it."),)))
    said.end_call()
    assert said.text == "I write it."  # of all calls of the message
    said.take_part("b", "half")
    assert said.text == "I write it."
    said.take_reply(Message("assistant", ()))
    assert said.text == ""
    said.begin()
    said.take_part("c", "after a prompt")
    assert said.text == "after a prompt"
