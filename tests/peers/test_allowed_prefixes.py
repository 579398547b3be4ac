"""What a permission for the beginning of a command covers, in the program itself, with nobody to ask."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from support.isthmus_program import ISTHMUS
from support.programs import require
from support.surroundings import Surroundings

ALLOWED = ("git", "ls", "cat", "echo", "find", "printf", "test", "[", "[[", "sed", "sort", "tar", "uniq", "awk", "make")
READ_OTHERWISE = (
    "git status\n\\\ntouch made",
    "git status # fine \\\n\\\ntouch made",
    "cat <<E<f\n$a\nE\ntouch made\nF\n",
    "echo <<'E' $\nE\n(echo a)\n(touch made)\nE\n",
    "ls\v/run.sh",
    "find . {-exec,touch,made,\\;}",
    "find . -maxdepth 0 -exe? touch made \\;",
    "[ -v 'a[$(touch made)]' ]",
    "[[ 'a[$(touch made)]' -eq 1 ]]",
    "test -v 'a[$(touch made)]'",
    "printf -v'a[$(touch made)]' y",
    "[[a & touch made ]]",
    'echo "$ $(touch made)"',
    "case$x in\n a) ls;;\nesac",
)
"""Commands that bash reads otherwise than a parser of shell syntax."""
RUN_OR_WRITE = (
    "git grep -O./run.sh a",
    "git ls-remote --upload-pack=./run.sh .",
    "git archive --exec=./run.sh --remote=. HEAD",
    "git log --output=made",
    "git -c core.fsmonitor=./run.sh status",
    "sed -n 'w made' f",
    "sed '1e touch made' f",
    "sort -o made f",
    "sort f --outp=made",
    "tar cf /dev/null f --checkpoint=1 --checkpoint-action=exec=./run.sh",
    "tar cf /dev/null -I ./run.sh f",
    "uniq f made",
    "awk 'BEGIN { system(\"touch made\") }'",
    "make SHELL=./run.sh",
)
"""Commands whose options run another program, or write a file."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "ls\v").mkdir(parents=True)
    for program in (folder / "run.sh", folder / "ls\v" / "run.sh"):
        program.write_text("#!/bin/sh\n: > made\n", encoding="utf-8")
        program.chmod(0o755)
    for name in ("f", "a", "-exec"):
        (folder / name).write_text("a\na\n", encoding="utf-8")
    (folder / "Makefile").write_text("all:\n\t@true\n", encoding="utf-8")
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for command in (("init", "-q"), ("add", "f"), (*identity, "commit", "-qm", "a")):
        subprocess.run([require("git"), *command], cwd=folder, check=True, timeout=60)
    return folder


def results_of(commands: tuple[str, ...], allowed: tuple[str, ...], home: Path, workspace: Path) -> list[str]:
    """Return what came of each command in a conversation under `-p`, where the user allowed these prefixes."""
    settings = {"tools": {"allowed": [f"run_shell_command({prefix})" for prefix in allowed]}}
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    calls = [{"call": {"name": "run_shell_command", "arguments": {"command": command}}} for command in commands]
    script = workspace.parent / "script.yaml"
    scenario = {"prompt": ".", "replies": [*calls, {"text": "done"}]}
    script.write_text(json.dumps({"scenarios": [scenario]}), encoding="utf-8")
    options = (
        "-p",
        "go",
        "-o",
        "stream-json",
        "-m",
        f"scripted:{script}",
        "--no-ide",
        "--data-dir",
        str(home / "data"),
    )
    ended = subprocess.run(
        [*ISTHMUS, *options], cwd=workspace, env={**os.environ, "x": ""}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, encoding="utf-8", timeout=100, check=True,
    )  # fmt: skip
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return [json.dumps(line.get("error") or line["output"]) for line in lines if line["type"] == "tool_result"]


@pytest.mark.parametrize(
    ("commands", "allowed"),
    [(READ_OTHERWISE, ("git status",)), (READ_OTHERWISE, ALLOWED), (RUN_OR_WRITE, ALLOWED)],
    ids=["one_prefix", "read_otherwise", "run_or_write"],
)
def test_a_command_that_does_more_than_its_prefix_says_is_refused(
    commands: tuple[str, ...], allowed: tuple[str, ...], surroundings: Surroundings, workspace: Path
) -> None:
    files = sorted(workspace.iterdir())
    results = results_of((*commands, "git status --short"), allowed, surroundings.home, workspace)
    refused = ["nobody can be asked" in result for result in results]
    assert dict(zip((*commands, "git status --short"), refused, strict=True)) == {
        **dict.fromkeys(commands, True),
        "git status --short": False,
    }
    assert sorted(workspace.iterdir()) == files


@pytest.mark.parametrize("command", [*READ_OTHERWISE, *RUN_OR_WRITE])
def test_such_a_command_does_more_where_it_is_run(command: str, workspace: Path) -> None:
    if command.startswith(("[[a", "case$x")):
        # What these run is no program of this folder.
        done = subprocess.run(["bash", "-c", command], cwd=workspace, capture_output=True, timeout=60, check=False)
        assert b"not found" in done.stderr
        return
    subprocess.run(
        ["bash", "-c", command], cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert (workspace / "made").exists()
