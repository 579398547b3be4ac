import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from isthmus.models.port.base import (
    Done,
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelToolResult,
    Retrying,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    requests_of,
    text_of,
)
from isthmus.models.port.costs import request_cost
from isthmus.models.scripted.script_file import MAXIMUM_BYTES, ScriptError, parse_script, read_script
from isthmus.models.scripted.scripted import DEMO_PROMPT, DEMO_SCRIPT, ScriptedModel, open_scripted

pytestmark = pytest.mark.anyio

SYSTEM = "You are Isthmus.\n\nThe workspace is /home/me/my project (on Linux). Relative paths are relative to it.\n"
GREETING = 'def greet(name: str) -> str:\n    return f"Hello, {name}!"\n\n\nprint(greet("world"))\n'


class Conversation:
    """A conversation with a script, with a newly opened model for each message."""

    def __init__(self, script: str | Path) -> None:
        self._script = script
        self.messages: list[Message] = []
        self.waits: list[float] = []
        self.items: list[StreamItem] = []

    async def say(self, text: str) -> Message:
        self.messages.append(Message("user", (Text(text),)))
        return await self.answer()

    async def give(self, *contents: str, is_error: bool = False) -> Message:
        calls = requests_of(self.messages[-1])
        results = [
            ModelToolResult(call.id, call.name, content, is_error)
            for call, content in zip(calls, contents, strict=True)
        ]
        self.messages.append(Message("user", tuple(results)))
        return await self.answer()

    async def answer(self) -> Message:
        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        script = read_script(self._script) if isinstance(self._script, Path) else parse_script(self._script, "s.yaml")
        request = ModelRequest(SYSTEM, tuple(self.messages))
        self.items = [item async for item in ScriptedModel(script, sleep).stream(request)]
        done = self.items[-1]
        assert isinstance(done, Done)
        self.messages.append(done.message)
        return done.message


RENAME = r"""
name: practice
chunk_characters: 4
scenarios:
  - prompt: '(?i)rename (?P<old>\w+) to (\w+)'
    replies:
      - thought: Where is {{old}}?
        text: "Looking for {{ old }} in {{workspace}}."
        call:
          name: grep_search
          arguments: {pattern: '{{old}}', options: {all: true, depth: 2}, in: ['{{1}}', '{{2}}']}
      - alternatives:
          - when: result matches in (?P<file>\S+\.py)
            steps:
              - delay: 0.5
              - text: It is in {{file}}.
          - when: result failed
            text: "Failed: {{result}}"
          - text: Nowhere.
  - prompt: loop
    repeat: true
    replies:
      - call: {name: glob}
  - prompt: cut
    replies:
      - {text: Half an, finish: length}
"""


async def test_a_reply_streams_its_steps_with_the_placeholders_filled() -> None:
    it = Conversation(RENAME)
    message = await it.say("Please rename foo to bar")
    assert text_of(message) == "Looking for foo in /home/me/my project."
    texts = [item.text for item in it.items if isinstance(item, TextDelta)]
    assert max(map(len, texts)) == 4
    assert "".join(texts) == text_of(message)
    assert "".join(item.text for item in it.items if isinstance(item, ThoughtDelta)) == "Where is foo?"
    assert ToolRequestStarted("grep_search") in it.items
    arguments = {"pattern": "foo", "options": {"all": True, "depth": 2}, "in": ["foo", "bar"]}
    assert requests_of(message) == (ToolRequest("call_1", "grep_search", arguments),)


@pytest.mark.parametrize(
    ("result", "is_error", "text"),
    [("found in a/b.py", False, "It is in a/b.py."), ("no grep", True, "Failed: no grep"), ("", False, "Nowhere.")],
)
async def test_the_result_of_a_call_decides_between_alternatives(result: str, is_error: bool, text: str) -> None:
    it = Conversation(RENAME)
    await it.say("rename foo to bar")
    assert text_of(await it.give(result, is_error=is_error)) == text
    assert (0.5 in it.waits) == text.startswith("It is")


async def test_a_new_prompt_begins_its_scenario_anew_and_ids_stay_unique() -> None:
    it = Conversation(RENAME)
    await it.say("rename foo to bar")
    await it.give("nothing")
    message = await it.say("rename one to two")
    assert [call.id for call in requests_of(message)] == ["call_2"]


async def test_a_scenario_that_repeats_never_ends_and_one_that_does_not_says_so() -> None:
    it = Conversation(RENAME)
    await it.say("loop")
    for number in range(2, 5):
        assert [call.id for call in requests_of(await it.give("x"))] == [f"call_{number}"]
    await it.say("rename a to b")
    it.messages += [await it.give("nothing"), Message("user", (ModelToolResult("x", "x", "x"),))]
    assert "no further reply" in text_of(await it.answer())


async def test_a_finish_can_be_scripted() -> None:
    it = Conversation(RENAME)
    await it.say("cut")
    done = it.items[-1]
    assert isinstance(done, Done)
    assert done.finish is Finish.LENGTH


async def test_a_prompt_without_a_scenario_is_an_error_that_quotes_it() -> None:
    with pytest.raises(ModelError, match="'something else'") as caught:
        await Conversation(RENAME).say("something else")
    assert caught.value.kind is ModelErrorKind.BAD_REQUEST


async def test_errors_end_the_turn_or_pass_after_some_tries() -> None:
    script = """
scenarios:
  - prompt: passing
    replies: [{error: {kind: rate_limit, retry_after: 3, times: 2, message: slow}, text: ok}]
  - prompt: lasting
    replies: [{text: well, error: {kind: overloaded, status: 503, retry_after: 9}}]
"""
    it = Conversation(script)
    assert text_of(await it.say("passing")) == "ok"
    assert it.items[:2] == [Retrying(2, 3, 3, "slow"), Retrying(3, 3, 3, "slow")]
    assert it.waits == [3, 3]
    with pytest.raises(ModelError) as caught:
        await it.say("lasting")
    error = caught.value
    assert (error.kind, error.status, error.retry_after) == (ModelErrorKind.OVERLOADED, 503, 9)


async def test_usage_is_the_same_each_time_and_counts_what_came_before_as_cached() -> None:
    first, second = Conversation(RENAME), Conversation(RENAME)
    for it in (first, second):
        await it.say("rename foo to bar")
        await it.give("nothing")
    assert first.items == second.items
    done = first.items[-1]
    assert isinstance(done, Done)
    assert 0 < done.usage.cached < done.usage.input
    assert done.usage.output > 0


async def test_the_demonstration_reads_runs_proposes_and_sums_up() -> None:
    it = Conversation(DEMO_SCRIPT)
    calls = requests_of(await it.say(DEMO_PROMPT))
    assert [call.name for call in calls] == ["read_file", "run_shell_command"]
    (edit,) = requests_of(await it.give(GREETING, "Hello, world!"))
    assert edit.name == "replace"
    assert GREETING.count(edit.arguments["old_string"]) == 1
    changed = GREETING.replace(edit.arguments["old_string"], edit.arguments["new_string"])
    names: dict[str, Any] = {}
    exec(changed, names)  # noqa: S102 - the file that the demonstration would write
    assert names["farewell"]("you") == "Goodbye, you!"
    assert names["greet"]("you") == "Hello, you!"
    summary = await it.give("Modified greeting.py.")
    assert requests_of(summary) == ()
    assert "Done" in text_of(summary)


@pytest.mark.parametrize(
    ("result", "is_error", "words"),
    [
        ("Modified greeting.py. User modified the content of the file to be: x", False, "You changed my proposal"),
        ("The user rejected this call; it was not run.", True, "did not accept"),
        ("no space left to write greeting.py; nothing was changed", True, "no space left"),
    ],
)
async def test_the_demonstration_sees_what_became_of_its_edit(result: str, is_error: bool, words: str) -> None:
    it = Conversation(DEMO_SCRIPT)
    await it.say(DEMO_PROMPT)
    await it.give(GREETING, "Hello, world!")
    assert words in text_of(await it.give(result, is_error=is_error))


async def test_the_demonstration_makes_the_file_when_there_is_none() -> None:
    it = Conversation(DEMO_SCRIPT)
    await it.say(DEMO_PROMPT)
    (edit,) = requests_of(await it.give("greeting.py does not exist", "exit 2", is_error=True))
    assert edit.name == "write_file"
    compile(edit.arguments["content"], "greeting.py", "exec")


async def test_the_demonstration_says_what_it_is_and_how_to_get_a_real_model() -> None:
    text = text_of(await Conversation(DEMO_SCRIPT).say("Fix all bugs"))
    for words in (
        "demonstration model",
        "GEMINI_API_KEY",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "Ollama",
        DEMO_PROMPT,
    ):
        assert words in text


def test_no_answer_of_the_demonstration_is_wrapped_in_its_file() -> None:
    texts = texts_of(yaml.safe_load(DEMO_SCRIPT.read_text("utf-8")))
    assert len(texts) > 5
    # A line that goes on in lower case after a line without a stop was one sentence.
    assert [text for text in texts if re.search(r"(?m)^\w.{60,}[^.:\n]\n[a-z]", text)] == []


def texts_of(value: Any) -> list[str]:
    """Return all values that are called "text" in a part of a script."""
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in texts_of(item)]
    if not isinstance(value, dict):
        return []
    parts = cast("dict[str, Any]", value)
    return [parts["text"]] if "text" in parts else [text for item in parts.values() for text in texts_of(item)]


MISTAKES = {
    "scenarios: [": (1, 13, "not YAML"),
    "": (1, 1, "empty"),
    "just text": (1, 1, "expected a script"),
    "name: x": (1, 1, "expected `scenarios`"),
    "scenarios: []": (1, 12, "at least one"),
    "scenarios:\n  - prompt: x\n": (2, 5, "a scenario needs `replies`"),
    "scenarios:\n  - prompt: '('\n    replies: [{text: a}]": (2, 13, "not a regular expression"),
    "scenarios:\n  - prompt: x\n    reples: []": (3, 5, "has no `reples`"),
    "scenarios:\n  - prompt: x\n    prompt: y": (3, 5, "occurs twice"),
    "scenarios:\n  - prompt: x\n    replies:\n      - {}": (4, 9, "at least one of text"),
    "scenarios:\n  - prompt: x\n    replies:\n      - text: [a]": (4, 15, "expected a text, received a sequence"),
    "scenarios:\n  - prompt: x\n    replies:\n      - text: '{{nobody}}'": (4, 15, "unknown placeholder {{nobody}}"),
    "scenarios:\n  - prompt: x\n    replies:\n      - delay: soon": (4, 16, "a number of seconds"),
    "scenarios:\n  - prompt: x\n    replies:\n      - delay: -1": (4, 16, "not negative"),
    "scenarios:\n  - prompt: x\n    replies:\n      - call: {arguments: {}}": (4, 15, "a call needs `name`"),
    "scenarios:\n  - prompt: x\n    replies:\n      - error: {kind: sad}": (4, 23, "expected one of authentication"),
    "scenarios:\n  - prompt: x\n    replies:\n      - {text: a, when: now}": (4, 25, "result matches REGEX"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_in_a_script_is_named_with_its_place(text: str) -> None:
    line, column, words = MISTAKES[text]
    with pytest.raises(ScriptError) as caught:
        parse_script(text, "talk.yaml")
    assert str(caught.value).startswith(f"talk.yaml:{line}:{column}: ")
    assert words in str(caught.value)


def test_a_script_that_cannot_be_read_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match=re.escape(f"{tmp_path / 'none.yaml'}:1:1: the script cannot be read")):
        open_scripted(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(ScriptError, match="expected UTF-8"):
        open_scripted(tmp_path / "bytes.yaml")


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "large"])
def test_only_a_regular_file_of_a_limited_size_is_read_as_a_script(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "talk.yaml"
    match kind:
        case "device":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            path.write_bytes(b"scenarios: 7\n" + b"#" * MAXIMUM_BYTES)
    with pytest.raises(ScriptError, match=r"talk\.yaml:1:1: the script cannot be read: "):
        read_script(path)


@pytest.mark.parametrize("text", ["hunter2: x\n", "hunter2", "- *hunter2", "a: hunter2: b", "%hunter2 x", "!hunter2 x"])
def test_an_error_quotes_nothing_of_a_file_that_is_not_a_script(tmp_path: Path, text: str) -> None:
    path = tmp_path / "other"
    path.write_text(text, "utf-8")
    with pytest.raises(ScriptError, match="expected a mapping with `scenarios`") as caught:
        read_script(path)
    assert "hunter2" not in str(caught.value)


def test_aliases_cannot_make_a_small_script_a_large_one() -> None:
    levels = "".join(f"  l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    call = "    replies:\n      - call: {name: a, arguments: {b: *l8}}\n"
    with pytest.raises(ScriptError, match="more than 200000 values"):
        parse_script(f"x:\n  l0: &l0 [a]\n{levels}scenarios:\n  - prompt: x\n{call}", "talk.yaml")


def test_an_alias_that_holds_itself_is_an_error() -> None:
    text = "scenarios:\n  - prompt: x\n    replies:\n      - call: {name: a, arguments: &a {b: *a}}"
    with pytest.raises(ScriptError, match="alias"):
        parse_script(text, "talk.yaml")


def test_dates_in_arguments_stay_texts_so_that_they_are_json() -> None:
    text = (
        "scenarios:\n  - prompt: x\n    replies:\n      - call: {name: a, arguments: {d: 2026-01-02, n: null, f: 1.5}}"
    )
    step: Any = parse_script(text, "talk.yaml").scenarios[0].replies[0][0].steps[0]
    assert json.loads(json.dumps(step.arguments)) == {"d": "2026-01-02", "n": None, "f": 1.5}


async def test_a_script_costs_nothing_or_the_price_that_it_states() -> None:
    for line, cost in (("", 0), ("price: 2\n", 10_000_000), ("price: 0.5\n", 2_500_000), ("price: unknown\n", None)):
        model = ScriptedModel(parse_script(f"{line}scenarios: [{{prompt: '', replies: [{{text: '12345678'}}]}}]", "s"))
        items = [item async for item in model.stream(ModelRequest("", (Message("user", (Text("12345678901"),)),)))]
        done = items[-1]
        assert isinstance(done, Done)
        assert (done.usage.input, done.usage.output, done.usage.cost) == (3, 2, cost)
        assert request_cost(replace(done.usage, cost=None), model.capabilities.costs) == cost


@pytest.mark.parametrize("price", ["-1", "free", "[1]", "1e3", ".nan"])
def test_a_price_that_is_no_amount_is_refused(price: str) -> None:
    with pytest.raises(ScriptError, match=r"s\.yaml:1:8: expected US dollars for a million tokens, or unknown"):
        parse_script(f"price: {price}\nscenarios: [{{prompt: '', replies: [{{text: x}}]}}]", "s.yaml")
