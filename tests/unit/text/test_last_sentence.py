"""The last sentence of a message, as it stands beside a question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.text.last_sentence import LONGEST_SENTENCE, last_sentence


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("It has no zone. I take departure times as local time.", "I take departure times as local time."),
        ("Now I run the tests:", "Now I run the tests"),
        ("Now I run :", "Now I run"),
        ("```py\nx = 1\n```\nI add it now.", "I add it now."),
        ("Done. See v1.2 of a.py, e.g. Better names.", "See v1.2 of a.py, e.g. Better names."),
        ("- one\n- **two** are left. Let me\nwrite them", "Let me write them"),
        ("## Plan", "Plan"),
        ('I said "no." Then I go!', "Then I go!"),
        ("一处没有时区。我来修改它。", "我来修改它。"),
        ("", ""),
        ("This is it:\n```\nrm -rf /\n```", ""),
        ("| a | b |", ""),
        ('{"name": "write_file", "arguments": {"path": "a.py"}}', ""),
        ('I write it.\n\n[\n  {"path": "a.py"}\n]\n', ""),
        ('{"text": "' + "a. B " * 2000 + '"}', ""),
        ("[" * 100_000 + "]" * 100_000, "]" * (LONGEST_SENTENCE - 1) + "\u2026"),
        ("{braces} are kept in {names}", "{braces} are kept in {names}"),
    ],
)
def test_the_last_sentence_is_found(message: str, wanted: str) -> None:
    assert last_sentence(message) == wanted


def test_nothing_hidden_stays_in_a_sentence() -> None:
    assert last_sentence("I read. \x1b[2JThen \u202e it\nis.") == "␛[2JThen \\u202e it is."
    assert last_sentence("word " * 5000) == ("word " * 60)[: LONGEST_SENTENCE - 1] + "\u2026"


@given(st.text(alphabet="aZ .!?:\n`*_#->|1)\u202e\x1b\u3002", max_size=300))
def test_a_sentence_is_one_short_line_of_any_message(message: str) -> None:
    sentence = last_sentence(message)
    assert len(sentence) <= LONGEST_SENTENCE
    assert not {"\n", "\x1b", "\u202e"} & set(sentence)
    assert sentence == sentence.strip()
