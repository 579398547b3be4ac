"""The table of the kinds of questions that are answered in the page by each means: it has all that there are."""

from pathlib import Path
from typing import get_args

from isthmus.development_tool import ConfirmationDetails
from isthmus.forms.asked_question import ASK_USER
from isthmus.questions import QUESTION_TOOLS
from support.question_kinds import KINDS, missing_effects, write_files


def test_each_kind_of_confirmation_is_answered_in_the_page() -> None:
    assert {kind.details for kind in KINDS if kind.details} == set(get_args(ConfirmationDetails))


def test_each_call_that_asks_by_itself_is_answered_in_the_page() -> None:
    assert {kind.tool for kind in KINDS if kind.tool} == {ASK_USER, *QUESTION_TOOLS}


def test_without_answers_no_kind_has_had_its_effect(tmp_path: Path) -> None:
    write_files(tmp_path)
    assert missing_effects(tmp_path, "") == [kind.name for kind in KINDS]
