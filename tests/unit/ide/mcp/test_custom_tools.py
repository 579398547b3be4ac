"""Custom tools: functions become tools with a schema, and none of their faults harms the companion."""

import asyncio
import json
import sys
import threading
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from isthmus import companion
from isthmus.ide.mcp.custom_tools import MAXIMUM_TOOLS, CustomToolError, Image, ToolRegistry
from isthmus.ide.mcp.mcp_peer import CallToolResult
from isthmus.ide.mcp.tool_content import MAXIMUM_BLOCKS, MAXIMUM_CHARACTERS, MAXIMUM_IMAGE_BYTES
from isthmus.ide.mcp.tool_files import load_tools
from isthmus.ide.mcp.tool_names import COMPANION_TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools() -> ToolRegistry:
    return ToolRegistry()


def _text(result: CallToolResult) -> str:
    (block,) = result.content
    return block["text"]


@dataclass
class Point:
    x: int
    y: int = 0


async def test_the_schema_comes_out_of_the_type_hints(tools: ToolRegistry) -> None:
    @tools.tool
    def look_up(
        word: Annotated[str, "What to look up."], json: bool = False, how: Literal["exact", "near"] = "near"
    ) -> str:
        """Look a word up."""
        return f"{word} {json} {how}"

    (listed,) = tools.listed()
    assert (listed.name, listed.description) == ("look_up", "Look a word up.")
    assert listed.input_schema == {
        "type": "object",
        "properties": {
            "word": {"type": "string", "description": "What to look up."},
            "json": {"type": "boolean", "default": False},
            "how": {"type": "string", "enum": ["exact", "near"], "default": "near"},
        },
        "required": ["word"],
        "additionalProperties": False,
    }
    assert await tools.call("look_up", {"word": "a", "json": True}) == CallToolResult.text("a True near")
    assert look_up("b") == "b False near"


async def test_arguments_are_made_what_the_hints_say(tools: ToolRegistry) -> None:
    @tools.tool
    def shift(point: Point, _by: int = 1) -> Point:
        """Shift a point."""
        return Point(point.x + _by, point.y)

    assert json.loads(_text(await tools.call("shift", {"point": {"x": 1}, "_by": 3}))) == {"x": 4, "y": 0}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [({}, "word"), ({"word": 1}, "word"), ({"word": "a", "other": 1}, "other"), ({"word": None}, "word")],
)
async def test_arguments_that_do_not_fit_are_named_in_an_error(
    tools: ToolRegistry, arguments: dict[str, Any], problem: str
) -> None:
    @tools.tool
    def look_up(word: str) -> str:
        """Look a word up."""
        return word

    result = await tools.call("look_up", arguments)
    assert result.is_error
    assert _text(result).startswith(f"look_up: {problem}: ")


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("plain", ["plain"]),
        ({"a": [1, None]}, ['{"a":[1,null]}']),
        (["a", "b"], ['["a","b"]']),
        (3, ["3"]),
        (None, []),
        (Point(1), ['{"x":1,"y":0}']),
    ],
    ids=repr,
)
async def test_results_become_text(tools: ToolRegistry, value: object, texts: list[str]) -> None:
    @tools.tool
    async def give() -> object:
        """Give it."""
        return value

    result = await tools.call("give", {})
    assert [block["text"] for block in result.content] == texts
    assert not result.is_error


async def test_images_are_images_also_between_texts(tools: ToolRegistry) -> None:
    @tools.tool
    def draw() -> list[object]:
        """Draw."""
        return ["before", Image(b"\x89PNG"), Image(b"\xff\xd8", "image/jpeg")]

    result = await tools.call("draw", {})
    assert [dict(block) for block in result.content] == [
        {"type": "text", "text": "before"},
        {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
        {"type": "image", "data": "/9g=", "mimeType": "image/jpeg"},
    ]


async def test_a_result_that_is_too_large_is_cut_and_says_so(tools: ToolRegistry) -> None:
    @tools.tool
    def flood(how: str) -> object:
        """Flood."""
        small, large = Image(b"1"), Image(b"0" * (MAXIMUM_IMAGE_BYTES + 1))
        return {"text": "x" * (MAXIMUM_CHARACTERS + 1), "image": [large, small], "many": [small] * 300}[how]

    text = _text(await tools.call("flood", {"how": "text"}))
    assert text.startswith("x" * MAXIMUM_CHARACTERS + "\n[cut")
    large, small = (await tools.call("flood", {"how": "image"})).content
    assert "left out" in large["text"]
    assert small["type"] == "image"
    many = (await tools.call("flood", {"how": "many"})).content
    assert len(many) == MAXIMUM_BLOCKS + 1
    assert "left out: 100 more" in many[-1]["text"]


async def test_what_a_tool_raises_is_an_error_result(tools: ToolRegistry) -> None:
    @tools.tool
    def fail() -> None:
        """Fail."""
        raise LookupError("no such page")

    @tools.tool
    async def leave() -> None:
        """Leave."""
        sys.exit(3)

    @tools.tool
    def leave_thread() -> None:
        """Leave."""
        sys.exit(3)

    @tools.tool
    def odd() -> object:
        """Give a value that is not JSON."""
        return object()

    assert await tools.call("fail", {}) == CallToolResult.error("fail: LookupError: no such page")
    for name in ("leave", "leave_thread", "odd"):
        result = await tools.call(name, {})
        assert result.is_error
        assert _text(result).startswith(f"{name}: ")


async def test_a_tool_that_takes_too_long_is_an_error_and_holds_nobody_up(tools: ToolRegistry) -> None:
    release = threading.Event()

    @tools.tool(timeout=0.01)
    def block() -> None:
        """Block."""
        release.wait()

    @tools.tool(timeout=0.01)
    async def wait() -> None:
        """Wait."""
        await asyncio.Event().wait()

    for name in ("block", "wait"):
        result = await tools.call(name, {})
        assert result.is_error
        assert "not done after 0.01 s" in _text(result)
    release.set()


async def test_a_wrapped_coroutine_is_awaited(tools: ToolRegistry) -> None:
    async def inner() -> str:
        return "done"

    @tools.tool
    def outer() -> Any:
        """Return a coroutine."""
        return inner()

    assert _text(await tools.call("outer", {})) == "done"


@pytest.mark.parametrize("name", sorted(COMPANION_TOOLS))
def test_the_names_of_the_companions_own_tools_are_taken(tools: ToolRegistry, name: str) -> None:
    with pytest.raises(CustomToolError, match=f"{name}.*itself"):
        tools.tool(name=name, description="Mine.")(lambda: None)
    assert len(tools) == 0


def test_a_declaration_that_cannot_be_is_refused_with_what_to_change(tools: ToolRegistry) -> None:
    def bare() -> None: ...

    def positional(a: int, /) -> None:
        """Do it."""

    def many(*rest: int) -> None:
        """Do it."""

    def odd(a: threading.Thread) -> None:
        """Do it."""

    def unknown(a: int) -> None:
        """Do it."""

    unknown.__annotations__["a"] = "Missing"

    with pytest.raises(CustomToolError, match=r"bare.*docstring"):
        tools.tool(bare)
    with pytest.raises(CustomToolError, match="letters"):
        tools.tool(name="a b", description="It.")(bare)
    with pytest.raises(CustomToolError, match="timeout"):
        tools.tool(name="a", description="It.", timeout=0)(bare)
    for function in (positional, many, odd, unknown):
        registry = ToolRegistry()
        registry.tool(function)
        with pytest.raises(CustomToolError, match=function.__name__):
            registry.listed()
    tools.tool(name="twice", description="It.")(bare)
    with pytest.raises(CustomToolError, match="another"):
        tools.tool(name="twice", description="It.")(bare)


def test_there_is_a_cap_on_how_many_there_are(tools: ToolRegistry) -> None:
    for number in range(MAXIMUM_TOOLS):
        tools.tool(name=f"tool{number}", description="It.")(lambda: None)
    with pytest.raises(CustomToolError, match=str(MAXIMUM_TOOLS)):
        tools.tool(name="more", description="It.")(lambda: None)


@pytest.fixture
def sys_path(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("isthmus_custom_tools", "isthmus_beside")):
            del sys.modules[name]


@pytest.mark.usefixtures("sys_path")
async def test_a_file_declares_tools_and_imports_what_stands_beside_it(tools: ToolRegistry, tmp_path: Path) -> None:
    (tmp_path / "isthmus_beside.py").write_text("WORD = 'beside'\n", encoding="utf-8")
    file = tmp_path / "tools.py"
    file.write_text(
        """
from __future__ import annotations
from dataclasses import dataclass
from isthmus import companion
import isthmus_beside

@dataclass
class Page:
    number: int

@companion.tool
async def read(page: Page) -> str:
    '''Read a page.'''
    return f"{isthmus_beside.WORD} {page.number}"
""",
        encoding="utf-8",
    )
    load_tools(str(file), tools)
    assert _text(await tools.call("read", {"page": {"number": 3}})) == "beside 3"


@pytest.mark.usefixtures("sys_path")
async def test_the_example_of_the_documentation_works(tools: ToolRegistry, tmp_path: Path) -> None:
    guide = (Path(__file__).resolve().parents[4] / "docs" / "how-to" / "companion-tools.md").read_text(encoding="utf-8")
    file = tmp_path / "tools.py"
    file.write_text(guide.split("```python\n", 1)[1].split("```", 1)[0], encoding="utf-8")
    load_tools(str(file), tools)
    assert [tool.name for tool in tools.listed()] == ["look_up_ticket", "screenshot"]
    assert json.loads(_text(await tools.call("look_up_ticket", {"number": 7})))["number"] == "7"


@pytest.mark.usefixtures("sys_path")
@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("x = 1", "no function with @companion.tool"),
        ("x = ", "line 1"),
        ("x = 1\nraise OSError('no network')", r"line 2: OSError: no network"),
        ("import sys\nsys.exit(1)", "line 2: SystemExit"),
        ("from isthmus import companion\n@companion.tool\ndef a(): pass", "docstring"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_with_the_place(
    tools: ToolRegistry, tmp_path: Path, source: str, problem: str
) -> None:
    file = tmp_path / "tools.py"
    file.write_text(source, encoding="utf-8")
    with pytest.raises(CustomToolError, match=problem) as raised:
        load_tools(str(file), tools)
    assert str(file) in str(raised.value)


def test_a_missing_file_is_told(tools: ToolRegistry, tmp_path: Path) -> None:
    for name in ("missing.py", "tools.txt"):
        with pytest.raises(CustomToolError, match="expected an existing Python file"):
            load_tools(str(tmp_path / name), tools)


def test_outside_a_companion_the_decorator_changes_nothing() -> None:
    @companion.tool(timeout=3)
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @companion.tool
    def same(a: int) -> int:
        """Give back."""
        return a

    assert add(1, 2) == same(3)
