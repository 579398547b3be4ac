import time

import pytest

from isthmus.agent.approval.executing_options import TABLE
from isthmus.agent.approval.policy import Allow, ApprovalRequired, Deny, Policy, PrefixGrant, decide
from isthmus.agent.approval.shell_command import analyse
from isthmus.tools.base import ToolKind


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


@pytest.mark.parametrize("key", TABLE)
def test_every_row_of_the_table_is_understood(key: str) -> None:
    for item in TABLE[key].split():
        assert item[0] in "-!:<@+=*" or item.endswith("="), item


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
