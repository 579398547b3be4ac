"""The arguments and names of the Claude IDE protocol, as data: any input is arguments or a clear error."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.ide.claude.tools import TOOLS
from isthmus.ide.claude.wire import ArgumentError, Arguments, checked, diagnostics_json, language_id
from isthmus.ide.editor import Diagnostic, Position, Range, Severity
from isthmus.ide.mcp.mcp_peer import ToolDefinition

_NAMES = sorted({name for tool in TOOLS for name in tool.input_schema["properties"]} | {"_meta", "other", ""})
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from(TOOLS), st.dictionaries(st.sampled_from(_NAMES), _JSON))
def test_anything_is_arguments_of_the_schemas_types_or_an_error_naming_the_tool(
    tool: ToolDefinition, arguments: dict[str, Any]
) -> None:
    refused = ""
    try:
        taken = checked(tool, arguments)
    except ArgumentError as error:
        refused = str(error)
        taken = None
    if taken is None:
        assert refused.startswith(f"{tool.name}: ")
        return
    properties = tool.input_schema["properties"]
    assert set(tool.input_schema.get("required", ())) <= set(taken.values) <= set(properties)
    for name, value in taken.values.items():
        assert type(value) is {"string": str, "boolean": bool, "integer": int}[properties[name]["type"]]


@given(st.text())
def test_whatever_text_comes_is_a_path_or_an_error(text: str) -> None:
    path, refused = None, ""
    try:
        path = Arguments("tool", {"filePath": text}).path("filePath")
    except ArgumentError as error:
        refused = str(error)
    if path is None:
        assert refused.startswith("tool: expected filePath as the path of a file, received ")
    else:
        assert path
        assert "\0" not in path


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("/a/b.py", "python"),
        ("/a/B.PY", "python"),
        ("/a/b.tsx", "typescriptreact"),
        ("/a/analysis.ipynb", "jupyter"),
        ("/a/Makefile", "makefile"),
        ("/a/Dockerfile", "dockerfile"),
        ("/a/.env", "plaintext"),
        ("/a/b", "plaintext"),
        ("/a/b.unknown", "plaintext"),
    ],
)
def test_languages_have_the_ids_of_lsp(path: str, language: str) -> None:
    assert language_id(path) == language


def test_every_severity_has_a_word() -> None:
    at = Range(Position(0, 0), Position(0, 1))
    (file,) = diagnostics_json(Diagnostic("/a.py", at, severity, "m") for severity in Severity)
    assert [entry["severity"] for entry in file["diagnostics"]] == ["Error", "Warning", "Info", "Hint"]
    assert file["uri"] == "file:///a.py"


def test_a_file_that_was_asked_for_is_listed_also_without_diagnostics() -> None:
    assert diagnostics_json([], {"/a b.py": ""}) == [{"uri": "file:///a%20b.py", "diagnostics": []}]
    assert diagnostics_json([], {"/a b.py": "file:///a b.py"}) == [{"uri": "file:///a b.py", "diagnostics": []}]
