"""Answers that must fit a JSON Schema: the schema's file, the answers that are asked for again, and the outputs."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.events import TextContent
from isthmus.terminal.headless import answer_validator
from isthmus.terminal.headless.answer_schema import (
    AnswerSchema,
    AnswerSchemaError,
    UnfitAnswerError,
    read_answer_schema,
)
from isthmus.terminal.headless.headless import ExitCode, HeadlessOptions, run_headless
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "count": {"$ref": "#/$defs/count"}},
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"count": {"type": "integer", "minimum": 0}},
}


def put(folder: Path, text: str) -> Path:
    path = folder / "schema.json"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture
def schema(tmp_path: Path) -> AnswerSchema:
    return read_answer_schema(put(tmp_path, json.dumps(SCHEMA)))


async def run(schema: AnswerSchema, output: str, *answers: str) -> tuple[int, str, str, MemoryAgent]:
    """Run with a model that gives these answers in turn."""
    left = list(answers)
    agent = MemoryAgent(lambda _: [TextContent(f"m{len(left)}", left.pop(0))])
    out, err = io.StringIO(), io.StringIO()
    options = HeadlessOptions("count", output, {"workspace_path": "/w"}, schema=schema)
    code = await run_headless(agent, options, out, err)
    return code, out.getvalue(), err.getvalue(), agent


@pytest.mark.parametrize("answer", ['{"name": "a"}', '```json\n{"name": "a"}\n```', '\n {"name":\n"a"} \n'])
async def test_a_fitting_answer_is_printed_as_one_line_of_json(schema: AnswerSchema, answer: str) -> None:
    code, out, err, _ = await run(schema, "text", answer)
    assert (code, out, err) == (0, '{"name": "a"}\n', "")


async def test_the_json_formats_have_the_value(schema: AnswerSchema) -> None:
    _, out, _, _ = await run(schema, "json", '{"name": "a", "count": 2}')
    assert json.loads(out)["structured_output"] == {"name": "a", "count": 2}
    _, out, _, _ = await run(schema, "stream-json", '{"name": "a"}')
    assert json.loads(out.splitlines()[-1])["structured_output"] == {"name": "a"}


async def test_an_unfit_answer_is_asked_for_again_with_the_reason(schema: AnswerSchema) -> None:
    code, out, err, _ = await run(schema, "text", "Sure! It is a.", '{"name": 3}', '{"name": "a"}')
    assert (code, out) == (0, '{"name": "a"}\n')
    assert "the answer is not JSON" in err
    assert "name: 3 is not of type 'string'" in err


async def test_after_three_unfit_answers_the_run_fails_with_a_status_of_its_own(schema: AnswerSchema) -> None:
    code, out, err, _ = await run(schema, "json", "a", "b", '{"count": -1, "name": "x"}')
    assert code == ExitCode.UNFIT == 58
    found = json.loads(out)
    assert found["error"]["type"] == "UnfitAnswer"
    assert "structured_output" not in found
    assert "count: -1 is less than the minimum of 0" in err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ('{"type": "nothing"}', "is not a JSON Schema"),
        ('{"$ref": "https://evil.test/schema"}', "refers to https://evil.test/schema, outside the file"),
        ('{"properties": {"a": {"prefixItems": [{"$ref": "file:///etc/passwd"}]}}}', "refers to file:///etc/passwd"),
        ("x" * 300_000, "cannot be read"),
        ("[]", "is not a JSON Schema: it is a list"),
        ('{"maximum": NaN}', "is not JSON"),
        ('{"$ref": "#/$defs/nothing"}', "refers to #/\\$defs/nothing, which it does not have"),
        ('{"items": {"$dynamicRef": "#nothing"}}', "refers to #nothing, which it does not have"),
        ('{"$defs": {"a": {"$id": "b", "$ref": "#"}}}', 'has "\\$id" inside'),
        ('{"pattern": "(?=a)b"}', r"pattern \(\?=a\)b"),
        ('{"items": {"patternProperties": {"(a)\\\\1": true}}}', r"pattern \(a\)\\1"),
        ('{"pattern": "a{99999999999}"}', r"pattern a\{9+\}"),
        (f'{{"pattern": "{"(" * 9_000}"}}', "has the pattern"),
        ('{"patternProperties": {"a": true}, "unevaluatedProperties": false}', "unevaluatedProperties"),
    ],
)
def test_a_file_that_is_no_usable_schema_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(AnswerSchemaError, match=problem):
        read_answer_schema(put(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AnswerSchemaError, match=r"missing\.json cannot be read"):
        read_answer_schema(tmp_path / "missing.json")


SLOW = "(a+)+$"
"""A pattern that takes a backtracking search a time that doubles with each character."""


@pytest.mark.parametrize(
    ("schema", "answer"),
    [
        ({"pattern": SLOW}, f'"{"a" * 60}b"'),
        ({"patternProperties": {SLOW: False}, "required": ["x"]}, f'{{"{"a" * 60}b": 1}}'),
        ({"patternProperties": {SLOW: True}, "additionalProperties": False}, f'{{"{"a" * 60}b": 1}}'),
        ({"propertyNames": {"pattern": SLOW}}, f'{{"{"a" * 60}b": 1}}'),
    ],
)
def test_no_pattern_takes_a_time_that_explodes(tmp_path: Path, schema: dict[str, Any], answer: str) -> None:
    with pytest.raises(UnfitAnswerError, match=r"does not match|is a required|is unexpected"):
        read_answer_schema(put(tmp_path, json.dumps(schema))).value_of(answer)


@pytest.mark.parametrize(
    ("schema", "fitting", "unfit"),
    [
        ({"pattern": "^[a-z]+$"}, '"abc"', '"Abc"'),
        ({"patternProperties": {"^n": {"type": "integer"}}}, '{"n": 1, "m": "x"}', '{"n": "x"}'),
        ({"patternProperties": {"^n": True}, "additionalProperties": False}, '{"n": 1}', '{"m": 1}'),
        (
            {"properties": {"a": True}, "patternProperties": {"^n": True}, "additionalProperties": {"type": "null"}},
            '{"a": 1, "n": 1, "m": null}',
            '{"m": 1}',
        ),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"$anchor": "b", "minimum": 1}}}, "2", "0"),
        ({"$ref": "#b", "$defs": {"a": {"$anchor": "b", "minimum": 1}}}, "2", "0"),
        ({"$id": "https://evil.test/s", "$ref": "#/$defs/a", "$defs": {"a": {"minimum": 1}}}, "2", "0"),
    ],
)
def test_patterns_and_references_mean_what_json_schema_says(
    tmp_path: Path, schema: dict[str, Any], fitting: str, unfit: str
) -> None:
    found = read_answer_schema(put(tmp_path, json.dumps(schema)))
    assert found.value_of(fitting) == json.loads(fitting)
    with pytest.raises(UnfitAnswerError):
        found.value_of(unfit)


def test_references_that_multiply_without_end_are_an_unfit_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_validator, "MAXIMUM_FOLLOWED", 2_000)
    twice = {f"n{at}": {"allOf": [{"$ref": f"#/$defs/n{at + 1}"}] * 2} for at in range(60)}
    schema = {"$ref": "#/$defs/n0", "$defs": {**twice, "n60": True}}
    with pytest.raises(UnfitAnswerError, match="references multiply"):
        read_answer_schema(put(tmp_path, json.dumps(schema))).value_of("1")


def test_the_limit_of_references_holds_for_each_answer_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_validator, "MAXIMUM_FOLLOWED", 3)
    schema = read_answer_schema(put(tmp_path, '{"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "integer"}}}'))
    for _ in range(3):
        assert schema.value_of("[1, 2, 3]") == [1, 2, 3]
    with pytest.raises(UnfitAnswerError, match="references multiply"):
        schema.value_of("[1, 2, 3, 4]")


@pytest.mark.parametrize("answer", ["NaN", "[1e999]", '"\\ud800"'])
def test_only_what_is_json_again_is_an_answer(tmp_path: Path, answer: str) -> None:
    with pytest.raises(UnfitAnswerError, match="is not JSON"):
        read_answer_schema(put(tmp_path, "true")).value_of(answer)


@pytest.mark.parametrize("answer", ["[" * 100_000, "1" * 4_000_001, "", "NaN and more"])
def test_no_answer_breaks_the_check(schema: AnswerSchema, answer: str) -> None:
    with pytest.raises(UnfitAnswerError):
        schema.value_of(answer)
