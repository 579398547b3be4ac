"""The files of subagents, in the forms of Gemini CLI and Claude Code."""

from pathlib import Path

import pytest

from isthmus.agent.subagents.child_tools import is_named
from isthmus.agent.subagents.definition import MAXIMUM_INSTRUCTIONS, SubagentDefinition, read_definition
from isthmus.agent.subagents.finding import built_in, find_subagents

GEMINI = """---
name: security-auditor
description: Finds security faults.
kind: local
tools:
  - read_file
  - grep_search
  - mcp_github_*
model: gemini-3-flash-preview
temperature: 0.2
max_turns: 10
timeout_mins: 5
---
You audit code.
"""
CLAUDE = """---
name: code-reviewer
description: >-
  Reviews code.
  Use proactively.
tools: Read, Grep, Bash
disallowedTools: Write
model: sonnet
permissionMode: plan
maxTurns: 7
---

You review code.
"""


def test_the_form_of_gemini_cli() -> None:
    assert read_definition(GEMINI, "file", "here") == SubagentDefinition(
        "security-auditor",
        "Finds security faults.",
        "You audit code.",
        tools=("read_file", "grep_search", "mcp_github_*"),
        model="gemini-3-flash-preview",
        max_turns=10,
        minutes=5,
        source="here",
        unused=("temperature",),
    )


def test_the_form_of_claude_code_whose_words_for_models_mean_that_of_the_session() -> None:
    assert read_definition(CLAUDE, "file", "here") == SubagentDefinition(
        "code-reviewer",
        "Reviews code. Use proactively.",
        "You review code.",
        tools=("Read", "Grep", "Bash"),
        refused_tools=("Write",),
        max_turns=7,
        only_plans=True,
        source="here",
    )


@pytest.mark.parametrize("tools", ["", "tools: '*'\n", "tools: [read_file, '*']\n"])
def test_no_list_of_tools_or_a_star_means_all(tools: str) -> None:
    definition = read_definition(f"---\nname: a\ndescription: b\n{tools}---\nc", "file", "here")
    assert definition.tools is None


def test_an_empty_list_means_no_tools() -> None:
    assert read_definition("---\nname: a\ndescription: b\ntools: []\n---\nc", "file", "here").tools == ()


@pytest.mark.parametrize(
    ("front", "body", "problem"),
    [
        ("description: b", "", "of instructions"),
        ("description: b", "x" * (MAXIMUM_INSTRUCTIONS + 1), "of instructions"),
        ("name: a", "c", "description: expected a text"),
        ("name: ../a\ndescription: b", "c", "name: expected at most 64 letters"),
        ("description: b\nkind: remote\nagent_card_url: https://x.test", "c", "agents at other addresses"),
        ("description: b\nagent_card_json: '{}'", "c", "agents at other addresses"),
        ("description: b\nhooks: {PreToolUse: [1]}", "c", "hooks: they are not applied"),
        ("description: b\ntools: 'Bash(git log:*)'", "c", "expected the name of a tool alone"),
        ("description: b\ntools: 1", "c", "tools: expected names of tools"),
        ("description: b\nmax_turns: 0", "c", "max_turns: expected a whole number"),
        ("description: b\nmaxTurns: true", "c", "maxTurns: expected a whole number"),
        ("description: b\ntimeout_mins: 1.5", "c", "timeout_mins: expected a whole number"),
        ("- a", "c", "the front matter: expected name"),
        ("a: [", "c", "is not YAML"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(front: str, body: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        read_definition(f"---\n{front}\n---\n{body}", "file", "here")


def put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")


def test_files_override_by_name_and_a_bad_one_stops_no_other(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    put(home / ".claude/agents", "reviewer.md", CLAUDE)
    put(home / ".gemini/agents", "auditor.md", GEMINI)
    put(home / ".gemini/agents", "_draft.md", GEMINI)
    put(home / ".gemini/agents", "bad.md", "no front matter")
    put(project / ".gemini/agents", "mine.md", GEMINI.replace("Finds security faults", "Finds ours"))
    found = find_subagents(home, project, ["generalist"])
    described = {one.name: one.description for one in found.definitions}
    assert set(described) == {"code-reviewer", "codebase_investigator", "security-auditor"}
    assert described["security-auditor"] == "Finds ours."
    bad = str(home / ".gemini/agents/bad.md")
    assert any(problem.startswith(f"{bad} is not used: expected front matter") for problem in found.problems)
    assert any("these keys are not used: temperature" in problem for problem in found.problems)
    assert find_subagents(None, None).definitions == built_in()


def test_a_project_makes_no_file_outside_it_a_subagent(tmp_path: Path) -> None:
    project = tmp_path / "project"
    put(tmp_path / "secrets", "s.md", GEMINI)
    put(project / ".gemini/agents", "own.md", CLAUDE)
    (project / ".gemini/agents/link.md").symlink_to(tmp_path / "secrets/s.md")
    (project / ".claude").mkdir()
    (project / ".claude/agents").symlink_to(tmp_path / "secrets")
    found = find_subagents(None, project)
    assert {one.name for one in found.definitions} - {one.name for one in built_in()} == {"code-reviewer"}
    assert len([problem for problem in found.problems if "leads out of the project" in problem]) == 2


@pytest.mark.parametrize(
    ("pattern", "tool", "server", "is_meant"),
    [
        ("read_file", "read_file", None, True),
        ("Read", "read_file", None, True),
        ("Read", "read_many_files", None, True),
        ("Bash", "run_shell_command", None, True),
        ("Edit", "write_file", None, False),
        ("mcp_*", "search", "github", True),
        ("mcp_github_*", "search", "github", True),
        ("mcp__github", "search", "github", True),
        ("mcp__github__search", "search", "github", True),
        ("mcp__git", "search", "github", False),
        ("search", "search", "github", True),
        ("Read", "read_file", "github", False),
        ("mcp_*", "read_file", None, False),
        ("read_*", "read_file", None, True),
    ],
)
def test_tools_are_named_as_either_program_names_them(
    pattern: str, tool: str, server: str | None, is_meant: bool
) -> None:
    assert is_named([pattern], tool, server, "search") is is_meant
