"""Permissions for the beginning of a command, in the program itself, without a user to ask."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from isthmus.agent.approval.shell_command import analyse
from support.isolation import IsolatedFolders
from support.loaded_program import LoadedProgram
from support.programs import require

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
"""Commands that bash reads differently from a parser of shell syntax."""
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

ELSEWHERE = (
    "git grep --open-files-in-pager=./run.sh a",
    "git diff --no-index --output=made f a",
    "git rebase --exec ./run.sh --root",
    "git -c alias.x='!./run.sh' x",
    "git clone -q --upload-pack=./run.sh . other",
    "git fetch --upload-pack=./run.sh .",
    "git format-patch -1 -o made",
    "sort --compress-program=./run.sh -S 1b Makefile .git/index .git/index",
    "sed 's/a/touch made/e' f",
    "sed -i.made s/a/b/ f && mv f.made made",
    "tar cf a.tar f && tar xf a.tar --to-command=./run.sh",
    "xxd f made",
    "make -f rules",
    "make --eval='$(shell touch made)'",
    "curl -s file://$PWD/f -o made",
    "split --filter=./run.sh f",
    "dd if=f of=made",
    "find . -maxdepth 0 -fprint made",
    "gcc -wrapper ./run.sh -c a.c",
    "awk '{ print > \"made\" }' f",
    "rg --pre ./run.sh a f",
    "npm test --script-shell=./run.sh",
)
"""More such commands, of programs that not every machine has."""


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository") / "workspace"
    (folder / "ls\v").mkdir(parents=True)
    for program in (folder / "run.sh", folder / "ls\v" / "run.sh"):
        program.write_text("#!/bin/sh\n: > made\n", encoding="utf-8")
        program.chmod(0o755)
    for name in ("f", "a", "-exec"):
        (folder / name).write_text("a\na\n", encoding="utf-8")
    (folder / "rules").write_text("all:\n\ttouch made\n", encoding="utf-8")
    (folder / "a.c").write_text("int a;\n", encoding="utf-8")
    (folder / "package.json").write_text('{"scripts": {"test": "true"}}', encoding="utf-8")
    (folder / "Makefile").write_text("all:\n\t@true\n", encoding="utf-8")
    identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    for command in (("init", "-q"), ("add", "f"), (*identity, "commit", "-qm", "a")):
        subprocess.run([require("git"), *command], cwd=folder, check=True, timeout=60)
    return folder


@pytest.fixture
def workspace(repository: Path, tmp_path: Path) -> Path:
    return shutil.copytree(repository, tmp_path / "workspace")


def results_of(
    loaded: LoadedProgram, commands: tuple[str, ...], allowed: tuple[str, ...], home: Path, workspace: Path
) -> list[str]:
    """Return the result of each command in a conversation under `-p`, where the user allowed these prefixes."""
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
    ended = loaded.run(*options, folder=workspace, environment={**os.environ, "x": ""})
    assert ended.returncode == 57, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return [json.dumps(line.get("error") or line["output"]) for line in lines if line["type"] == "tool_result"]


@pytest.mark.parametrize(
    ("commands", "allowed"),
    [(READ_OTHERWISE, ("git status",)), (READ_OTHERWISE, ALLOWED), (RUN_OR_WRITE, ALLOWED)],
    ids=["one_prefix", "read_otherwise", "run_or_write"],
)
def test_a_command_that_does_more_than_its_prefix_says_is_refused(
    commands: tuple[str, ...],
    allowed: tuple[str, ...],
    isolated_folders: IsolatedFolders,
    workspace: Path,
    loaded_isthmus: LoadedProgram,
) -> None:
    files = sorted(workspace.iterdir())
    results = results_of(loaded_isthmus, (*commands, "git status --short"), allowed, isolated_folders.home, workspace)
    refused = ["no user can be asked" in result for result in results]
    assert dict(zip((*commands, "git status --short"), refused, strict=True)) == {
        **dict.fromkeys(commands, True),
        "git status --short": False,
    }
    assert sorted(workspace.iterdir()) == files


@pytest.mark.parametrize("command", ELSEWHERE)
def test_such_options_are_asked_whatever_prefix_was_allowed(command: str) -> None:
    analysis = analyse(command)
    assert analysis is None or analysis.asked


@pytest.mark.parametrize("command", [*READ_OTHERWISE, *RUN_OR_WRITE, *ELSEWHERE])
def test_such_a_command_does_more_where_it_is_run(command: str, workspace: Path) -> None:
    program = require(command.split()[0] if command in ELSEWHERE else "bash")
    identity = {f"GIT_{who}_{what}": "a@localhost" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "PATH": f"{os.environ['PATH']}{os.pathsep}{program.parent}"}
    if command.startswith(("[[a", "case$x")):
        # The programs that these run are not in this folder.
        done = subprocess.run(["bash", "-c", command], cwd=workspace, capture_output=True, timeout=60, check=False)
        assert b"not found" in done.stderr
        return
    subprocess.run(
        ["bash", "-c", command], cwd=workspace, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (workspace / "made").exists()
