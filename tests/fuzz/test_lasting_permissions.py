"""Lasting permissions for the first words of a command, compared with what the real programs do.

scripts/fuzz_lasting_permissions.py does the same for a number of lines, and for programs of Debian packages.
"""

from pathlib import Path

import pytest

from isthmus.agent.approval.grants import PROCEED_ALWAYS_COMMAND, PROCEED_ALWAYS_PREFIX
from isthmus.agent.approval.known_programs.rows import known_program
from isthmus.agent.approval.policy import ApprovalRequired, Policy, decide
from isthmus.agent.approval.shell_command import analyse
from isthmus.tools.port.base import ToolKind
from support import fuzzing
from support.program_options import (
    FOLDER,
    OptionJudge,
    git_commands,
    is_allowed,
    lasting_grants,
    lines_of,
    options_of,
    problem_of,
    programs_of,
)

SHARE = 0.5
LINES_OF_A_CASE = 4

pytestmark = pytest.mark.timeout(fuzzing.TIMEOUT)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> OptionJudge:
    return OptionJudge(tmp_path_factory.mktemp("judge"))


@pytest.fixture(scope="module")
def commands() -> list[tuple[str, ...]]:
    return [*git_commands(), *programs_of(Path("/"))]


def test_no_covered_option_runs_another_program_or_writes_a_file_that_is_not_named(
    judge: OptionJudge, commands: list[tuple[str, ...]]
) -> None:
    allowed = {command: grants for command in commands if (grants := lasting_grants(command))}
    assert len(allowed) > 100
    for chance in fuzzing.cases("lasting permissions", SHARE):
        command = chance.choice(list(allowed))
        lines = [
            line for line in lines_of(command, options_of(judge, command), chance) if is_allowed(line, allowed[command])
        ]
        chosen = chance.sample(lines, min(LINES_OF_A_CASE, len(lines)))
        problems = {line: problem_of(line, judge.run(line)) for line in chosen}
        assert {line: problem for line, problem in problems.items() if problem} == {}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("git grep -O./run.sh a", "ran another program"),
        ("git difftool --no-prompt -x ./run.sh", "ran another program"),
        ("sort -o made a", "wrote work/made"),
        ("uniq a made", "wrote work/made"),
        ("git diff --output=made", "wrote work/made"),
        ("git status", ""),
        ("touch made", ""),
    ],
)
def test_what_a_line_does_is_seen_and_such_a_line_is_not_allowed(judge: OptionJudge, line: str, problem: str) -> None:
    words = tuple(line.split())
    assert problem_of(line, judge.run(line)) == problem
    grants = lasting_grants(words[:2] if words[0] == "git" else words[:1])
    assert bool(problem) != is_allowed(line, grants)


def test_only_known_programs_have_a_lasting_permission_for_their_first_words(
    commands: list[tuple[str, ...]],
) -> None:
    """Whatever a program is called that the table does not know, by each of its names and by its path."""
    unknown = [command for command in commands if (known := known_program(command)) is None or known.row is None]
    assert len(unknown) > 200
    prefixes: set[tuple[str, ...]] = set()
    for command in unknown:
        for program in (" ".join(command), f"/usr/bin/{' '.join(command)}", f"../bin/{' '.join(command)}"):
            analysis = analyse(f"{program} ./run.sh")
            prefixes.update(() if analysis is None else analysis.prefixes)
    # An interpreter is allowed with the file that it runs, awk with its script, and nice is seen through.
    assert [prefix for prefix in prefixes if prefix[-1] != "./run.sh"] == []


def test_a_program_of_which_nothing_is_known_is_allowed_as_one_exact_command() -> None:
    asked = decide(Policy(), "run_shell_command", ToolKind.EXECUTE, {"command": "frobnicate --all a"}, folder=FOLDER)
    assert isinstance(asked, ApprovalRequired)
    options = [option.id for option in asked.options]
    assert PROCEED_ALWAYS_COMMAND in options
    assert PROCEED_ALWAYS_PREFIX not in options
