"""Files with such deep nesting that a recursive parser or reader would exceed the recursion limit."""

from pathlib import Path

import pytest

from isthmus.agent.commands.custom.command_toml import read_toml
from isthmus.agent.commands.custom.custom_files import MAXIMUM_TOTAL_BYTES, find_custom_commands
from isthmus.encoding import jsonc
from isthmus.notebooks.notebook import NotebookError
from isthmus.notebooks.notebook import parse as parse_notebook
from isthmus.settings import SettingsError, load_settings

LIMIT = "nested more than 100 deep"
DEPTHS = (101, 300, 990, 5_000, 40_000)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize(
    ("start", "end"),
    [("a = " + "[", "]"), ("a = ", ""), ("", " = 1"), ("[", "]\nx = 1")],
    ids=["arrays", "tables", "dotted keys", "headers"],
)
def test_a_nested_custom_command_is_named_and_hurts_no_other(tmp_path: Path, depth: int, start: str, end: str) -> None:
    folder = tmp_path / ".gemini" / "commands"
    folder.mkdir(parents=True)
    inner = {"[": "[" * depth, "a": "{a = " * depth, "": ".".join(["a"] * (depth + 1))}
    body = inner["["] if start.endswith(" [") else inner["a"] if start else inner[""]
    if start == "[":
        body = inner[""]
    (folder / "a.toml").write_text(f'prompt = "x"\n{start}{body}{end}\n')
    (folder / "b.toml").write_text('prompt = """[[[[ {{{{ a.b.c"""\n')
    found = find_custom_commands(None, tmp_path, ())
    assert [node.name for node in found.nodes] == ["b"]
    assert found.problems == (f"{folder / 'a.toml'} is not used: line 2: it is {LIMIT}",)


@pytest.mark.parametrize(
    "text",
    [
        'prompt = """' + "[" * 500 + "a." * 500 + '"""',
        "prompt = '" + "{" * 500 + "'",
        "prompt = '''\n" + "a." * 500 + "'''''",
        'prompt = "\\"' + "[" * 500 + '"',
        "# " + "[" * 500 + "\nprompt = 1",
        'prompt = """' + '"" [[' * 200 + '"""',
        "prompt = [" + "1.5, " * 500 + "]",
    ],
)
def test_brackets_and_dots_in_texts_and_lists_are_no_nesting(text: str) -> None:
    assert "prompt" in read_toml(text)


def test_commands_of_a_folder_are_read_up_to_a_total_size(tmp_path: Path) -> None:
    folder = tmp_path / ".gemini" / "commands"
    folder.mkdir(parents=True)
    for number in range(10):
        (folder / f"c{number}.toml").write_text(f'prompt = "{"x" * 200_000}"\n')
    found = find_custom_commands(None, tmp_path, ())
    assert len(found.nodes) == 5
    assert found.problems == (f"{folder}: only the first {MAXIMUM_TOTAL_BYTES} bytes of commands are used",)


@pytest.mark.parametrize("depth", DEPTHS)
def test_nested_settings_are_an_error_that_names_the_file(tmp_path: Path, depth: int) -> None:
    path = tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"a":' * depth + "1" + "}" * depth)
    with pytest.raises(SettingsError, match=f"settings.json, line 1, column 1: it is {LIMIT}"):
        load_settings(tmp_path, tmp_path / "home")


def test_nesting_up_to_the_limit_is_read() -> None:
    assert jsonc.parse("[" * 100 + "]" * 100)
    assert read_toml("a = " + "[" * 100 + "]" * 100)
    assert read_toml("a." * 100 + "a = 1")


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("before", ['{"cells":[],"metadata":', '{"cells":[{"cell_type":"code","metadata":'])
def test_a_nested_notebook_is_said_to_be_none(depth: int, before: str) -> None:
    after = "}" if "code" not in before else "}]}"
    with pytest.raises(NotebookError, match=LIMIT):
        parse_notebook(before + "[" * depth + "]" * depth + after)
