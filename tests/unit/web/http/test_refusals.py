"""Refusals of the workbench's API: each has a code, and the page has words for each code."""

import ast
import json
import re
from pathlib import Path

import pytest

import isthmus.web
from isthmus.a2a.protocol.errors import ERRORS
from isthmus.a2a.server.users.auth import Refusal
from isthmus.web.http.refusals import STATUSES, RefusalCode, refusal, refused

WEB = Path(isthmus.web.__file__).parent
PROBLEMS = Path(__file__).parents[4] / "frontend" / "src" / "problems" / "problem.ts"


def called_by(path: Path) -> set[str]:
    calls = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name)}


def test_the_page_has_words_for_each_code_and_for_no_others() -> None:
    named = set(re.findall(r"^  ([A-Z_]+): ", PROBLEMS.read_text(encoding="utf-8"), re.MULTILINE))
    assert named == {*RefusalCode, *(names.v1_reason for names in ERRORS.values())}


def test_the_api_refuses_nothing_without_a_code() -> None:
    modules = {path: called_by(path) for path in WEB.rglob("*.py") if path.name != "refusals.py"}
    assert [path.name for path, calls in modules.items() if "Refusal" in calls] == []
    assert [path.name for path in modules if '"error":' in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("code", RefusalCode)
def test_each_code_has_a_status_and_is_used(code: RefusalCode) -> None:
    assert 400 <= STATUSES[code] < 600
    sources = [path.read_text(encoding="utf-8") for path in WEB.rglob("*.py") if path.name != "refusals.py"]
    assert any(re.search(rf"RefusalCode\.{code}\b", source) for source in sources)


def test_an_answer_has_the_code_and_the_members_of_its_kind() -> None:
    answer = refused(refusal(RefusalCode.QUESTION_GONE, "too late"), {"outcome": None})
    assert (answer.status_code, json.loads(bytes(answer.body))) == (
        409,
        {"error": "too late", "code": "QUESTION_GONE", "outcome": None},
    )
    plain = refused(Refusal(401, "who are you", {"WWW-Authenticate": "Bearer"}))
    assert json.loads(bytes(plain.body)) == {"error": "who are you"}
    assert plain.headers["www-authenticate"] == "Bearer"
