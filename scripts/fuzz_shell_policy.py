"""Checks the shell policy against a real bash: counts the lines that run what nobody allowed.

    .venv/bin/python scripts/fuzz_shell_policy.py --lines 1000000
    .venv/bin/python scripts/fuzz_shell_policy.py --lines 250000 --revision 2758cfe
    .venv/bin/python scripts/fuzz_shell_policy.py --without plain_gaps

`--revision` checks the policy of that commit, `--without` the policy without one of its rules; both must have findings.
The exit code is 1 if something was found.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from isthmus.agent.approval.shell_command import analyse  # noqa: E402
from isthmus.agent.approval.shell_rules import RULES  # noqa: E402
from support.shell_judge import ShellJudge  # noqa: E402
from support.shell_lines import LineGenerator  # noqa: E402
from support.shell_policy import Analysis, bypass, difference, is_allowed  # noqa: E402

CHUNK = 4000
"""Number of lines that are made and checked together."""


def main() -> int:
    """Run, and print the findings and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--revision", help="check the policy of this commit")
    parser.add_argument("--without", action="append", default=[], help="leave out this rule")
    parser.add_argument("--shown", type=int, default=40, help="maximum number of findings to print")
    arguments = parser.parse_args()
    policy = _policy(arguments.revision, frozenset(arguments.without))
    generator = LineGenerator(random.Random(arguments.seed))  # noqa: S311
    start = time.monotonic()
    made = different = ran = over = 0
    seen: set[int] = set()
    found: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, ShellJudge(Path(folder)) as judge:
        while made < arguments.lines and time.monotonic() - start < arguments.seconds:
            count = min(CHUNK, arguments.lines - made)
            made += count
            # Many lines are repeated, and a line does the same each time.
            lines = [line for line in dict.fromkeys(generator.line() for _ in range(count)) if hash(line) not in seen]
            seen.update(map(hash, lines))
            different += len(lines)
            judged = [
                (line, analysis) for line in lines if is_allowed(analysis := policy(line)) and analysis is not None
            ]
            reports = judge.run([line for line, _ in judged])
            ran += len(reports)
            for (line, analysis), report in zip(judged, reports, strict=True):
                over += report.is_over
                problem = bypass(report) or ("" if arguments.revision else difference(analysis, report))
                if problem and line not in found:
                    found[line] = problem
                    kinds[problem.partition(":")[0]] += 1
                    if len(found) <= arguments.shown:
                        print(f"{problem[:120]}\n    {line!r}", flush=True)
            if sys.stderr.isatty() or made % (25 * CHUNK) == 0:
                print(f"{made} lines, {ran} run, {len(found)} found", file=sys.stderr, flush=True)
    seconds = time.monotonic() - start
    print(
        f"{made} lines, {different} different, {ran} allowed and run, {over} ended for time, "
        f"{len(found)} lines with a bypass {dict(kinds)}, {seconds:.0f} s, seed {arguments.seed}"
    )
    return 1 if found else 0


def _policy(revision: str | None, without: frozenset[str]) -> Callable[[str], Analysis | None]:
    if revision is None:
        if unknown := without - {rule.__name__ for rule in RULES}:
            raise SystemExit(f"no such rule: {', '.join(unknown)}")
        rules = tuple(rule for rule in RULES if rule.__name__ not in without)
        return lambda line: analyse(line, rules)
    source = subprocess.run(
        ["git", "show", f"{revision}:src/isthmus/agent/shell_command.py"],
        cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8",
    ).stdout  # fmt: skip
    module = ModuleType("isthmus.agent.shell_command_then")
    sys.modules[module.__name__] = module
    exec(compile(source, f"{revision}:shell_command.py", "exec"), module.__dict__)  # noqa: S102
    return module.analyse


if __name__ == "__main__":
    raise SystemExit(main())
