"""The shell policy over command lines of real projects: everyday commands can be allowed permanently."""

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.grants import PrefixGrant
from isthmus.agent.approval.policy import Allow, ApprovalRequired, Policy, decide
from isthmus.tools.port.base import ToolKind

LINES: list[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("ordinary_commands.toml").read_text(encoding="utf-8")
)["line"]


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES, ids=lambda line: line["text"][:60])
def test_an_ordinary_line_is_allowed_with_its_prefixes_or_asked_for_a_reason(line: dict[str, Any]) -> None:
    arguments = {"command": line["text"]}
    offered: list[str] = line.get("offered", [])
    asked = decide(Policy(), "run_shell_command", ToolKind.EXECUTE, arguments)
    assert isinstance(asked, ApprovalRequired)
    names = [option.name for option in asked.options if option.id == "proceed_always_prefix"]
    assert names == ([f"Always allow {', '.join(offered)} …"] if offered else [])
    grants = frozenset(PrefixGrant(tuple(prefix.split(" "))) for prefix in offered)
    decision = decide(Policy(grants=grants), "run_shell_command", ToolKind.EXECUTE, arguments)
    assert isinstance(decision, Allow if offered else ApprovalRequired)


def test_the_lines_are_many_from_three_registries_and_each_has_a_verdict() -> None:
    assert len({line["text"] for line in LINES}) == 300
    assert set(Counter(line["from"].split()[0] for line in LINES)) == {"npm", "PyPI", "Debian"}
    assert all(("offered" in line) != ("asked" in line) for line in LINES)
    assert sum("offered" in line for line in LINES) > 220
