"""The runner of tasks with the real program and a scripted model."""

import json
from pathlib import Path

import pytest
from bench.tasks.__main__ import main

SCRIPT = """
name: solver
scenarios:
  - prompt: 'accountants'
    replies:
      - text: I do not know.
  - prompt: 'port of the server'
    replies:
      - call:
          name: run_shell_command
          arguments: {command: "sed -i '/^\\\\[server/,$ s/8080/9090/' settings.ini"}
      - text: Done.
"""


def test_solved_turns_and_tokens_are_printed_for_each_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "solver.yaml"
    script.write_text(SCRIPT)
    only = ["--only", "crlf_file", "--only", "quoted_fields"]
    arguments = ["-m", f"scripted:{script}", *only, "--price", "1,0.1,2", "--json", str(tmp_path / "out.json")]
    assert main(arguments) == 1
    header, solved, unsolved, total = capsys.readouterr().out.splitlines()
    assert header.split() == ["task", "solved", "turns", "input", "cached", "output", "cost", "seconds"]
    assert solved.split()[:3] == ["crlf_file", "yes", "2"]
    assert unsolved.split()[:3] == ["quoted_fields", "no", "1"]
    assert "AssertionError" in unsolved
    assert total.startswith("1 of 2 solved")
    outcomes = json.loads((tmp_path / "out.json").read_text())
    assert [(one["task"], one["is_solved"], one["turns"]) for one in outcomes] == [
        ("crlf_file", True, 2),
        ("quoted_fields", False, 1),
    ]
    assert all(one["input_tokens"] > 0 and one["output_tokens"] > 0 for one in outcomes)
    assert main(["-m", f"scripted:{script}", "--only", "crlf_file"]) == 0


def test_an_agent_that_fails_or_takes_too_long_is_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "slow.yaml"
    script.write_text("scenarios:\n  - prompt: ''\n    replies:\n      - steps: [{delay: 100}, {text: x}]\n")
    assert main(["-m", f"scripted:{script}", "--only", "crlf_file", "--seconds", "0.1"]) == 1
    assert "the agent was ended after 0.1 s" in capsys.readouterr().out
    script.write_text("scenarios:\n  - prompt: 'nothing matches this'\n    replies:\n      - text: x\n")
    assert main(["-m", f"scripted:{script}", "--only", "crlf_file"]) == 1
    assert "the agent ended with status 1: " in capsys.readouterr().out
    assert main(["-m", "demo", str(tmp_path / "missing.toml")]) == 2
