"""The table of the questions that devices were told of, and its file."""

from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.web.push.sent_file import FILE, SentFile
from isthmus.web.push.sent_questions import (
    KEPT_SECONDS,
    MAXIMUM_TOLD,
    AnswerRecord,
    AnswerToken,
    SentQuestion,
    SentQuestionsError,
    SentTable,
    token_digest,
)

QUESTION = SentQuestion(
    "ann", "task", "call", "digest", 10.0, ("phone",), (AnswerToken(token_digest("t"), "phone", "allow", "yes", 99.0),)
)


def test_a_table_is_read_as_it_was_written() -> None:
    ended = replace(QUESTION, call_id="other", outcome=AnswerRecord("Laptop", 11.0, "allow", "id"))
    table = SentTable().with_question(QUESTION, 10.0).with_question(ended, 11.0)
    assert SentTable.decode(table.encode()) == table
    for damaged in (b"", b"[]", b"{}", b'{"version": 2, "questions": []}', b'{"version": 1, "questions": [{}]}'):
        with pytest.raises(SentQuestionsError):
            SentTable.decode(damaged)


def test_a_token_is_found_by_its_text_alone() -> None:
    table = SentTable().with_question(QUESTION, 10.0)
    assert table.find("t") == (QUESTION, QUESTION.tokens[0])
    assert table.find(QUESTION.tokens[0].digest) is None
    assert table.find("") is None


def test_the_first_outcome_stays_and_a_changed_question_has_none() -> None:
    table = SentTable().with_question(QUESTION, 10.0)
    first, later = AnswerRecord("Laptop", 11.0), AnswerRecord("Phone", 12.0)
    table = table.with_outcome("task/call", "digest", first).with_outcome("task/call", "digest", later)
    assert table.questions["task/call"].outcome == first
    assert table.with_outcome("task/call", "other", later) is table
    assert table.with_told("task/call", "other", "laptop") is table
    assert table.with_told("task/call", "digest", "laptop").questions["task/call"].told == ("phone", "laptop")


def test_old_ends_are_forgotten_first_and_open_questions_only_beyond_a_number() -> None:
    ended = replace(QUESTION, outcome=AnswerRecord("Laptop", 11.0))
    fresh = replace(QUESTION, call_id="new")
    table = SentTable().with_question(ended, 11.0)
    assert set(table.with_question(fresh, 11.0 + KEPT_SECONDS).questions) == {"task/call", "task/new"}
    assert set(table.with_question(fresh, 12.0 + KEPT_SECONDS).questions) == {"task/new"}
    for number in range(MAXIMUM_TOLD + 2):
        table = table.with_question(replace(QUESTION, call_id=str(number)), 11.0)
    assert len(table.questions) == MAXIMUM_TOLD
    assert "task/1" not in table.questions


def test_the_file_is_private_and_is_written_only_if_something_changed(tmp_path: Path) -> None:
    book = SentFile(tmp_path / "data")
    assert book.read() == SentTable()
    book.change(lambda table: (table, None))
    assert not (tmp_path / "data" / FILE).exists()
    book.change(lambda table: (table.with_question(QUESTION, 10.0), None))
    assert (tmp_path / "data" / FILE).stat().st_mode & 0o777 == 0o600
    assert SentFile(tmp_path / "data").read().questions == {"task/call": QUESTION}


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with pytest.raises(SentQuestionsError, match="cannot be read"):
        SentFile(tmp_path).read()
