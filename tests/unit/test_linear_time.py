"""Readers of foreign input take time in proportion to its length; with these texts they once took minutes or hung."""

import ast
import contextlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from isthmus.a2a.push.targets import PushRule
from isthmus.agent.commands.custom.command_toml import read_toml
from isthmus.agent.memory.imports import imports_in
from isthmus.agent.options import environment_for_remote_users
from isthmus.encoding import jsonc
from isthmus.errors import IsthmusError
from isthmus.mcp_host.config.secrets import summary
from isthmus.mcp_host.config.server_config import ConfigContext, Origin, decode_server
from isthmus.mcp_host.config.variables import expand
from isthmus.mcp_host.oauth.messages import Challenge
from isthmus.text.visible import ESCAPE_SEQUENCES

SIZE = 60_000
SECONDS = 1.0
"""CPU seconds for each of them; all take a few milliseconds."""


def server_summary(argument: str) -> object:
    context = ConfigContext(Origin.MCP_JSON, Path("/w/.mcp.json"), Path("/w"), {})
    config = decode_server("server", {"command": "x", "args": [argument]}, context)
    return summary(config)


READERS: Mapping[str, Callable[[], object]] = {
    "comments without an end": lambda: jsonc.parse("/*" * SIZE),
    "commas before comments without an end": lambda: jsonc.parse(",/*" * SIZE),
    "commas before comments": lambda: jsonc.parse("[" + ",/**/" * SIZE),
    "commas before lines of comments": lambda: jsonc.parse("[" + ",//\n" * SIZE),
    "quotes and backslashes": lambda: jsonc.parse('"\\' * SIZE),
    "an argument that looks like a URL": lambda: server_summary("://" + ":" * SIZE),
    "a variable that looks like a URL": lambda: environment_for_remote_users({"A": "://" + ":" * SIZE}),
    "a challenge of one word": lambda: Challenge.of("a" * SIZE),
    "a challenge of quotes without an end": lambda: Challenge.of('a="' + '\\"a="' * SIZE),
    "defaults of variables without an end": lambda: expand("${a:-" * SIZE, {}),
    "names of variables without an end": lambda: expand("${a" * SIZE, {}),
    "the name of a host": lambda: PushRule.of(["a" * 200 + "!"]),
    "code spans of many lengths": lambda: list(imports_in("@" + "a".join("`" * count for count in range(1, 700)))),
    "code spans without an end": lambda: list(imports_in("@" + "`a``a" * SIZE)),
    "control strings without an end": lambda: ESCAPE_SEQUENCES.sub("", "\x90" * SIZE),
    "titles without an end": lambda: ESCAPE_SEQUENCES.sub("", "\x1b]" * SIZE),
    "a key of many names": lambda: read_toml("a" + ".a" * SIZE + "=1"),
    "texts without an end": lambda: read_toml('a="""' + '"" ' * SIZE),
    "literal texts without an end": lambda: read_toml("a='''" + "'' " * SIZE),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_no_text_takes_long_to_read(name: str) -> None:
    begun = time.process_time()
    with contextlib.suppress(IsthmusError, ValueError):
        READERS[name]()
    assert time.process_time() - begun < SECONDS


@pytest.mark.slow
def test_no_expression_needs_a_possessive_group() -> None:
    # Before Python 3.11.5 such a group, unlike a possessive character, matches wrongly.
    possessive = re.compile(r"(?<![\\(])\)(?:[*+?]|\{\d*,?\d*\})\+|\(\?>")
    found: list[str] = []
    for path in (Path(__file__).parents[2] / "src" / "isthmus").rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if possessive.search(text) else ():
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and possessive.search(node.value):
                found.append(f"{path.name}:{node.lineno}")
    assert found == []
