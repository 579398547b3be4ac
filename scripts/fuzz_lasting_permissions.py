"""Checks the lasting permissions for a program's first words against the real programs.

    .venv/bin/python scripts/fuzz_lasting_permissions.py --lines 5000
    sh scripts/fetch_fuzzed_programs.sh /tmp/programs
    .venv/bin/python scripts/fuzz_lasting_permissions.py --lines 5000 --packages /tmp/programs

The options are mined from the help of each program of this machine, or with `--packages` of each program in a folder
with unpacked packages. The exit code is 1 if something was found.
"""

import argparse
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from isthmus.agent.approval.known_programs.rows import ROWS  # noqa: E402
from support.program_options import (  # noqa: E402
    OptionJudge,
    git_commands,
    is_allowed,
    lasting_grants,
    lines_of,
    options_of,
    problem_of,
    programs_of,
)

SUB_COMMANDS = [tuple(key.split()) for key in ROWS if " " in key and not key.startswith("git ")]
LINES_AT_ONCE = 25
"""Maximum number of lines of a program that are run before the next program."""


def main() -> int:
    """Run, and print the findings and the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=5000, help="minimum number of lines that are allowed and run")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    parser.add_argument("--packages", type=Path, help="folder with unpacked packages whose programs are run")
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)  # noqa: S311 - to be repeated
    made = ran = over = 0
    found: dict[str, str] = {}
    kinds: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        judge = OptionJudge(Path(folder), arguments.packages)
        own = programs_of(arguments.packages) if arguments.packages else [*git_commands(), *programs_of(Path("/"))]
        commands = [*own, *(command for command in SUB_COMMANDS if command[:1] in own)]
        options: dict[tuple[str, ...], list[str]] = {}
        allowed = {command: grants for command in commands if (grants := lasting_grants(command))}
        while ran < arguments.lines:
            before = ran
            for command in chance.sample(list(allowed), len(allowed)):
                if command not in options:
                    options[command] = options_of(judge, command)
                lines = list(dict.fromkeys(lines_of(command, options[command], chance)))
                made += len(lines)
                lines = [line for line in lines if is_allowed(line, allowed[command])]
                for line in chance.sample(lines, min(LINES_AT_ONCE, len(lines))):
                    effect = judge.run(line)
                    ran += 1
                    over += effect.is_over
                    if (problem := problem_of(line, effect)) and line not in found:
                        found[line] = problem
                        kinds[problem.split()[0]] += 1
                        print(f"{problem}\n    {line}", flush=True)
                    if ran % 500 == 0:
                        print(f"{made} lines, {ran} run, {len(found)} found", file=sys.stderr, flush=True)
                if ran >= arguments.lines:
                    break
            if ran == before:
                break
    print(
        f"{made} lines of {len(commands)} commands, {len(allowed)} lasting permissions, {ran} allowed and run,"
        f" {over} ended for time, {len(found)} with another effect {dict(kinds)}, seed {arguments.seed}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
