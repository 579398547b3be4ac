"""Answers that must fit a JSON Schema: the schema's file, the answers that are asked for again, and the outputs."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.events import TextContent
from isthmus.terminal.answer_schema import AnswerSchema, AnswerSchemaError, UnfitAnswerError, read_answer_schema
from isthmus.terminal.headless import ExitCode, HeadlessOptions, run_headless
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
    ],
)
def test_a_file_that_is_no_usable_schema_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(AnswerSchemaError, match=problem):
        read_answer_schema(put(tmp_path, text))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AnswerSchemaError, match=r"missing\.json cannot be read"):
        read_answer_schema(tmp_path / "missing.json")


@pytest.mark.parametrize("answer", ["[" * 100_000, "1" * 4_000_001, "", "NaN and more"])
def test_no_answer_breaks_the_check(schema: AnswerSchema, answer: str) -> None:
    with pytest.raises(UnfitAnswerError):
        schema.value_of(answer)
