"""Words in front of a command through which a permission sees, and those that end it."""

import pytest

from isthmus.agent.approval.grants import Grant, PrefixGrant, grants_of
from isthmus.agent.approval.policy import Allow, ApprovalRequired, Policy, decide
from isthmus.agent.approval.shell_command import analyse
from isthmus.tools.port.base import ToolKind

SHELL = "run_shell_command"
PYTEST = frozenset({PrefixGrant(("pytest",), "/w"), PrefixGrant(("npm", "run", "build"), "/w"), PrefixGrant(("ls",))})


def runs(command: str, grants: frozenset[Grant] = PYTEST, folder: str = "/w") -> bool:
    decision = decide(Policy(grants=grants), SHELL, ToolKind.EXECUTE, {"command": command}, folder=folder)
    return isinstance(decision, Allow)


@pytest.mark.parametrize(
    "command",
    [
        "timeout 60 pytest",
        "timeout 1.5m pytest -x",
        "timeout -k 5 --signal=KILL --foreground 60s pytest",
        "nice pytest",
        "nice -n 10 pytest",
        "nice -10 pytest",
        "time pytest",
        "time nice timeout 60 pytest",
        "CI=1 pytest",
        "LC_ALL=C.UTF-8 PYTHONUNBUFFERED=1 timeout 60 pytest",
        "NODE_ENV=production npm run build",
        "timeout 60 pytest; exit 1",
        "pytest 2>&1 | ls; exit $?",
    ],
)
def test_a_permission_sees_through_a_harmless_wrapper(command: str) -> None:
    assert runs(command, PYTEST | {PrefixGrant(("exit",))})
    assert not runs(command, PYTEST - {PrefixGrant(("pytest",), "/w"), PrefixGrant(("npm", "run", "build"), "/w")})
    assert not runs(command, folder="/other")


@pytest.mark.parametrize(
    "command",
    [
        "timeout 60 rm made",
        "timeout pytest",
        "timeout 60 $x",
        "timeout $x pytest",
        "timeout --kill-after=./x 60 pytest",
        "timeout -s ./x 60 pytest",
        "timeout 60 bash -c pytest",
        "timeout 60 env pytest",
        "timeout 60 find . -delete",
        "nice --version pytest",
        "nice -n $x pytest",
        "time cd sub",
        "time test -v 'a[$(touch made)]'",
        "time [ -v 'a[$(touch made)]' ]",
        "time eval pytest",
        "time if pytest",
        "time -p pytest",
        "ls | time pytest",
        "CI=1 time pytest",
        "</dev/null time pytest",
        "'time' pytest; ls",
        "'time' ./pytest",
        "./time pytest",
        "./timeout 60 pytest",
        "FOO=1 pytest",
        "PATH=1 pytest",
        "LD_LIBRARY_PATH=1 pytest",
        "PYTHONPATH=src pytest",
        "BASH_ENV=x pytest",
        "CI=$(touch made) pytest",
        "CI=./x pytest",
        "CI+=1 pytest",
        "CI=(1) pytest",
        "CI=1; pytest",
        "CI=1",
        "time CI=1 pytest",
        "timeout 60 CI=1 pytest",
        "source pytest",
        "source ../.venv/bin/activate && pytest",
        "source /x/.venv/bin/activate && pytest",
        "source .venv/bin/activate x && pytest",
        "source .venv/bin/activate && pytest",
        "source a/../../bin/activate && pytest",
        "./source .venv/bin/activate && pytest",
    ],
)
def test_a_permission_does_not_cover_more(command: str) -> None:
    assert not runs(
        command, PYTEST | {PrefixGrant((name,)) for name in ("cd", "test", "[", "touch") if name in command}
    )
    analysis = analyse(command)
    if analysis is not None:
        assert all(not words[0].startswith(("time", "nice")) for words in analysis.prefixes)


def test_an_activation_is_allowed_by_a_permission_of_its_own_in_its_folder() -> None:
    command = "source .venv/bin/activate && pytest"
    asked = decide(Policy(), SHELL, ToolKind.EXECUTE, {"command": command}, folder="/w")
    assert isinstance(asked, ApprovalRequired)
    assert "Always allow source .venv/bin/activate, pytest …" in [option.name for option in asked.options]
    grants = grants_of("proceed_always_prefix", SHELL, ToolKind.EXECUTE, {"command": command}, folder="/w")
    assert runs(command, grants)
    assert runs("source .venv/bin/activate && timeout 9 pytest -x", grants)
    assert not runs(command, grants, "/other")
    assert not runs("source .other/bin/activate && pytest", grants)
    assert not runs("source .venv/bin/activate && git status", grants)


def test_a_lasting_answer_names_the_command_and_not_its_wrapper() -> None:
    grants = grants_of("proceed_always_prefix", SHELL, ToolKind.EXECUTE, {"command": "timeout 9 pytest"}, folder="/w")
    assert grants == {PrefixGrant(("pytest",), "/w")}
    assert runs("time pytest", grants)


def test_rules_on_commands_see_the_wrapper_and_the_command() -> None:
    analysis = analyse("nice timeout 60 pytest -x")
    assert analysis is not None
    assert [command.words for command in analysis.commands] == [
        ("nice", "timeout", "60", "pytest", "-x"),
        ("timeout", "60", "pytest", "-x"),
        ("pytest", "-x"),
    ]
