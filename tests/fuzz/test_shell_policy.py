"""The shell policy compared with bash: no line that runs without a question runs more than the user allowed.

scripts/fuzz_shell_policy.py does the same for a number of lines, and for the policy of another commit.
"""

import random
import string
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from isthmus.agent.approval.shell_command import analyse
from isthmus.agent.approval.shell_rules import RULES, Rule
from support import fuzzing
from support.shell_judge import ShellJudge
from support.shell_lines import CORPUS, LineGenerator
from support.shell_policy import Analysis, bypass, difference, is_allowed

SHARE = 0.5
LINES_OF_A_CASE = 200
LINES_OF_A_SHELL = 20
PATIENCE_SECONDS = 60
"""Seconds in which the fuzzer must find a fault in a policy without one of its rules."""

pytestmark = pytest.mark.timeout(fuzzing.TIMEOUT)


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShellJudge]:
    with ShellJudge(tmp_path_factory.mktemp("judge")) as judge:
        yield judge


def bypasses(judge: ShellJudge, lines: list[str], policy: Callable[[str], Analysis | None] = analyse) -> dict[str, str]:
    """Run the lines that the policy allows; return those with another effect, and the effect."""
    judged = [(line, analysis) for line in lines if (analysis := policy(line)) is not None and is_allowed(analysis)]
    reports = judge.run([line for line, _ in judged])
    problems = {
        line: bypass(report) or difference(analysis, report)
        for (line, analysis), report in zip(judged, reports, strict=True)
    }
    return {line: problem for line, problem in problems.items() if problem}


def test_no_known_line_runs_more_than_was_allowed(judge: ShellJudge) -> None:
    assert bypasses(judge, CORPUS) == {}


def test_no_generated_line_runs_more_than_was_allowed(judge: ShellJudge) -> None:
    for chance in fuzzing.cases("shell policy", SHARE):
        generator = LineGenerator(chance)
        assert bypasses(judge, [generator.line() for _ in range(LINES_OF_A_CASE)]) == {}


@pytest.mark.parametrize("left_out", RULES, ids=lambda rule: rule.__name__)
def test_without_any_one_rule_a_line_runs_more_than_was_allowed(judge: ShellJudge, left_out: Rule) -> None:
    rules = tuple(rule for rule in RULES if rule is not left_out)
    generator = LineGenerator(random.Random(fuzzing.SEED))  # noqa: S311 - to be repeated
    lines, end = CORPUS, time.monotonic() + PATIENCE_SECONDS

    def allowed_without_it(line: str) -> Analysis | None:
        # Lines that are also allowed with all rules are judged by the tests above.
        return None if is_allowed(analyse(line)) else analyse(line, rules)

    # One line after the other: the first find is enough, and some run until the judge ends them.
    while not any(bypasses(judge, [line], allowed_without_it) for line in lines):
        assert time.monotonic() < end, f"{left_out.__name__} changes nothing"
        lines = [generator.line() for _ in range(LINES_OF_A_CASE)]


@pytest.mark.parametrize(
    ("line", "effect"),
    [
        ("touch X", "program: /judge/bin/touch"),
        ("nothing-of-the-kind", "program: 'nothing-of-the-kind'"),
        ("ls\v/run.sh", "program: ls\v/run.sh"),
        ("git stash", "program: /judge/bin/git"),
        ("ls & (pwn &)", "program: /judge/bin/pwn"),
        ("[ -v 'a[$(pwn)]' ]", "program: /judge/bin/pwn"),
        ("echo a > X", "file: X"),
        ("echo a > b", "file: b"),
        ("unset PATH; /bin/rm a", "file: (removed)"),
        ("cat < /dev/tcp/127.0.0.1/7777", "network"),
        ("find . -exe?", "find: "),
        ("git status; ls -l | cat", ""),
    ],
)
def test_what_a_line_does_is_seen(judge: ShellJudge, line: str, effect: str) -> None:
    (report,) = judge.run([line])
    assert bypass(report).startswith(effect)
    assert bool(bypass(report)) == bool(effect)


def test_no_builtin_that_can_be_allowed_evaluates_or_runs_its_arguments(judge: ShellJudge) -> None:
    names = subprocess.run(["bash", "-c", "compgen -b"], capture_output=True, text=True, check=True, timeout=60).stdout
    options = ("", *(f"-{letter}" for letter in string.ascii_letters))
    lines = [
        f"{name} {option} 'a[$(pwn)]'{more}" for name in names.split() for option in options for more in ("", " pwn")
    ]
    allowed = [line for line in lines if (analysis := analyse(line)) is not None and not analysis.asked]
    assert {"cd", "echo", "test", "wait"} <= {line.split()[0] for line in allowed}
    # Many in one bash, each in a subshell of its own, so that its settings and its exit do not affect the next.
    parts = [allowed[start : start + LINES_OF_A_SHELL] for start in range(0, len(allowed), LINES_OF_A_SHELL)]
    reports = judge.run(["\n".join(f"({line})" for line in part) for part in parts])
    problems = [part for part, it in zip(parts, reports, strict=True) if it.runs or it.changed or it.is_over]
    assert problems == []
