import re
import time
from pathlib import Path

import pytest

from isthmus.agent.approval.grants import PrefixGrant
from isthmus.agent.approval.guarded_commands import changes_guarded_file
from isthmus.agent.approval.known_programs.rows import ROWS
from isthmus.agent.approval.policy import Allow, ApprovalRequired, Deny, Policy, decide
from isthmus.agent.approval.shell_command import analyse
from isthmus.tools.port.base import ToolKind


def decision(command: str, *prefix: str, may_ask: bool = True) -> Allow | ApprovalRequired | Deny:
    policy = Policy(grants=frozenset({PrefixGrant(prefix)}), may_ask=may_ask)
    return decide(policy, "run_shell_command", ToolKind.EXECUTE, {"command": command})


@pytest.mark.parametrize(
    "command",
    [
        "git grep -O./run.sh a",
        "git grep -nO./run.sh a",
        "git grep --open-files=./run.sh a",
        "git fetch --upload-pack=./run.sh .",
        "git ls-remote --upload-p ./run.sh .",
        "git push --receive-pack=./run.sh",
        "git archive --exec=./run.sh --remote=. HEAD",
        "git diff --output=f",
        "git log --outp f",
        "git show --ext-diff",
        "git -c core.pager=./run.sh log",
        "git --exec-path=. status",
        "git -p status",
        "git config core.fsmonitor ./run.sh",
        "git rebase --exec ./run.sh",
        "git submodule foreach ./run.sh",
        'git log "$x"',
        "sed -i s/a/b/ f",
        "sed -n 'w f' a",
        "sed 's/a/b/e' f",
        "sed '1e ./run.sh' f",
        "sed -f script f",
        "sed '$!{p;w f\n}' a",
        "sed $x f",
        "sort -uo f a",
        "sort --compress-program=./run.sh f",
        "sort * ",
        "tar xf a.tar --checkpoint-action=exec=./run.sh",
        "tar xIf ./run.sh a.tar",
        "tar -xf a.tar --to-command=./run.sh",
        "tar xf host:a.tar",
        "rg --pre ./run.sh a",
        "man -P ./run.sh ls",
        "uniq a f",
        "uniq a ''",
        "uniq -f ./*",
        "uniq -s $x",
        "uniq -f$x",
        "xxd a f",
        "make test SHELL=./run.sh",
        "make test CFLAGS='$(shell ./run.sh)'",
        "make -f other test",
        "npm test --script-shell=./run.sh",
        "awk 'BEGIN { system(\"./run.sh\") }'",
        "awk '{ print | \"./run.sh\" }' f",
        "awk '{ print > \"f\" }' a",
        "awk -f script f",
        "go test -exec ./run.sh ./...",
        "gcc -wrapper ./run.sh a.c",
        "rsync -ave ./run.sh a b",
        "curl -sSo f http://localhost",
        "zip -T -TT ./run.sh a.zip a",
        "cargo build --config a.toml",
        "pytest -p plugin",
        "docker run image",
        "split --filter=./run.sh f",
        "dd if=a of=f",
        "fd -x ./run.sh",
        "deno eval 'x'",
        "less '+!./run.sh' f",
    ],
)
def test_an_option_that_runs_or_writes_is_asked_although_its_program_is_allowed(command: str) -> None:
    program = command.split()[0]
    asked = decision(command, program)
    assert isinstance(asked, ApprovalRequired)
    assert [option.id for option in asked.options] == ["proceed_once", "cancel"]
    assert isinstance(decision(command, program, may_ask=False), Deny)


@pytest.mark.parametrize(
    "command",
    [
        "git status *",
        "git log --oneline -n 3",
        "git diff --stat HEAD~1 -- '*.py'",
        'git log -- "$x"',
        "git --no-pager log",
        "git config --get user.name",
        "git commit -m 'a > b'",
        "sed -n 1,20p f",
        "sed -E 's/(a|b)+/x/g; /c/d' f",
        "sed -ne '/a/,/b/p' f",
        "sort -k 2 -u f",
        "sort -- *",
        "tar czf a.tgz src",
        "rg -n 'a b' src",
        "uniq -c -f 1 a",
        "xxd -l 16 a",
        "make -j4 test V=1",
        "npm run build -- --shell",
        "awk '{ print $2 }' f",
        "awk -F: '$1 == \"a\"' f",
        "go test -count=1 -v ./...",
        "gcc -Wall -O2 -c a.c",
        "curl -sSfL http://localhost",
        "pytest -x -q -k 'a and b'",
        "ls *",
        "cat $x",
    ],
)
def test_other_options_are_covered_by_the_permission_for_the_program(command: str) -> None:
    assert isinstance(decision(command, command.split()[0]), Allow)


def test_a_question_about_a_prefix_says_what_is_asked_all_the_same() -> None:
    asked = decide(Policy(), "run_shell_command", ToolKind.EXECUTE, {"command": "git log"})
    assert isinstance(asked, ApprovalRequired)
    (always,) = (option for option in asked.options if option.id == "proceed_always_prefix")
    assert always.description == (
        "For the rest of this session, commands that begin with these words run in this folder without asking; options"
        " that write files or run other programs, and output into files, are asked each time"
    )


def test_a_question_says_why_a_prefix_is_not_offered() -> None:
    asked = decision("git log --output=f", "git")
    assert isinstance(asked, ApprovalRequired)
    assert asked.options[0].description == "Asked each time: git log --output=f"


def test_every_part_of_a_row_is_understood() -> None:
    problems = [
        (key, part)
        for key, row in ROWS.items()
        for part in row.split()
        if not re.fullmatch(r"\*|[=:@]|\+[\w:#@]+|<\d|--?[A-Za-z0-9][\w.:=*/-]*|[a-z][\w-]*", part)
    ]
    assert problems == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "sed '" + " " * 60_000 + "x'",
        "sed 's/" + "\\a" * 30_000 + "'",
        "sed '" + "p;" * 30_000 + "w'",
        "sed '" + "{" * 60_000 + "'",
        "awk '" + "(" * 60_000 + "'",
        "git log " + "--o " * 15_000,
        "[ " + "a " * 30_000 + "]",
        "cat " + "<<E " * 10_000 + "\nE\n" * 5_000,
        "echo " + "`" * 60_000,
        "ls " + "a" * 60_000 + ">&",
        "ls " + ";ls 2>f" * 9_000,
        "[[ " + "! " * 20_000 + "a ]]",
        "[[ a == b" + " && a == b" * 6_000 + " ]]",
        "(" * 10_000 + "ls" + ")" * 10_000,
        "if ls; then " * 4_000 + "ls" + "; fi" * 4_000,
    ],
    ids=lambda command: command[:12],
)
def test_a_long_command_is_judged_in_a_time_that_grows_with_its_length(command: str) -> None:
    start = time.process_time()
    analyse(command)
    assert time.process_time() - start < 5


def test_a_question_names_the_commands_that_change_files_by_purpose() -> None:
    asked = decide(Policy(), "run_shell_command", ToolKind.EXECUTE, {"command": "git diff && cp a b && git add b"})
    assert isinstance(asked, ApprovalRequired)
    (always,) = (option for option in asked.options if option.id == "proceed_always_prefix")
    assert str(always.description).endswith("asked each time. These change files by purpose: cp, git add")


@pytest.mark.parametrize(
    "command",
    [
        "frob a",
        "/opt/frob a",
        "../frob a",
        "git frob",
        "git difftool",
        "cargo frob",
        "npx frob",
        "uv run frob",
        "vim a",
        "emacs a",
        "gdb a",
        "pipx run a",
        "pip download a",
        "docker cp a b",
    ],
)
def test_what_is_not_known_has_no_permission_for_its_first_words(command: str) -> None:
    asked = decide(Policy(), "run_shell_command", ToolKind.EXECUTE, {"command": command}, folder="/a")
    assert isinstance(asked, ApprovalRequired)
    assert [option.id for option in asked.options] == ["proceed_once", "proceed_always_command", "cancel"]


@pytest.mark.parametrize(
    ("grant", "command"),
    [
        ("git log", "git log --grep -- --output=f"),
        ("git log", "git log --outp"),
        ("tar", "tar xfI a ./run.sh"),
        ("tar", "tar xf a host:b"),
        ("sort", "sort -k -- -o f a"),
        ("systemctl", "systemctl --type status edit a"),
        ("systemctl", "systemctl edit a"),
        ("npx eslint", "npx eslint -o f a"),
        ("diff", "diff -l a b"),
        ("rg", "rg -z a"),
        ("fd", "fd -l a"),
        ("curl", "curl -w '%output{f}' http://localhost"),
        ("objdump", "objdump --plugin ./run.so a"),
        ("cargo test", "cargo test -- --logfile f"),
        ("gcc", "gcc @options"),
        ("deno run", "deno run --preload ./run.js a.ts"),
    ],
)
def test_an_option_that_is_not_covered_is_asked_wherever_it_stands(grant: str, command: str) -> None:
    asked = decision(command, *grant.split())
    assert isinstance(asked, ApprovalRequired)
    assert [option.id for option in asked.options] == ["proceed_once", "cancel"]


@pytest.mark.parametrize(
    "command", ["deno run a.ts --preload x", "git diff -- --output", "git diff --stat -- a", "uniq -f 2 a"]
)
def test_operands_are_not_options(command: str) -> None:
    assert isinstance(decision(command, *command.split()[:1]), Allow)


@pytest.mark.parametrize("command", ["npm -s exec a", "yarn --silent dlx a", "npm --silent config set script-shell x"])
def test_a_sub_command_that_is_always_asked_is_found_behind_options(command: str) -> None:
    assert isinstance(decision(command, command.split()[0]), ApprovalRequired)


@pytest.mark.parametrize("command", ["npm run init", "yarn test config", "npm -s run build"])
def test_a_script_may_have_the_name_of_a_sub_command_that_is_asked(command: str) -> None:
    assert isinstance(decision(command, command.split()[0]), Allow)


def test_what_is_copied_into_a_folder_is_compared_by_its_name_there(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    assert changes_guarded_file("cp a/settings.json .claude", tmp_path)
    assert changes_guarded_file("cp a/settings.json .claude/", tmp_path)
    assert not changes_guarded_file("cp a.txt b.txt", tmp_path)
