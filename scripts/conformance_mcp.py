"""Runs the MCP project's conformance suites against Isthmus's MCP host, and compares the failures with the known ones.

``python scripts/conformance_mcp.py FOLDER [SCENARIO ...]``: FOLDER holds the installed packages of
tests/peers/conformance. Each scenario of each suite is a server for which the client program of tests/support is
started. A check passes, fails (a warning is a failure) or only informs; a scenario without a check that passed or
failed does not count as passed. Exit status: 0 if exactly the known checks fail, otherwise 1.
"""

import concurrent.futures
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from known_failures import differences, known_failures

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "tests" / "support" / "mcp_conformance_client.py"
SUITES = {"0.1.16": "conformance-0.1", "0.2.0-alpha.12": "conformance-0.2"}
SIDE_BY_SIDE = 4
SCENARIO_SECONDS = 120
EMPTY = frozenset(
    f"sep-2640-client-{name}" for name in ("no-prefetch", "verify-digest", "verify-size", "verify-frontmatter")
)
"""Scenarios without a check, which do not count: they are of the extension for skills, which Isthmus does not have."""


@dataclass
class Result:
    """Result of one scenario."""

    suite: str
    scenario: str
    passed: int = 0
    failed: list[str] = field(default_factory=list[str])
    output: str = ""


def scenarios(program: Path) -> list[str]:
    """Return the names of a suite's scenarios for clients."""
    listed = subprocess.run(
        ["node", str(program), "list", "--client"], capture_output=True, text=True, encoding="utf-8", check=True
    )
    return [line.split()[1] for line in listed.stdout.splitlines() if line.startswith("  - ")]


def run(suite: str, program: Path, scenario: str) -> Result:
    """Run one scenario."""
    result = Result(suite, scenario)
    with tempfile.TemporaryDirectory() as folder:
        command = shlex.join([sys.executable, str(CLIENT)])
        arguments = ["client", "--command", command, "--scenario", scenario, "--output-dir", folder]
        arguments += ["--timeout", str(SCENARIO_SECONDS * 1000)]
        ended = subprocess.run(
            ["node", str(program), *arguments], capture_output=True, text=True, encoding="utf-8", check=False,
            timeout=SCENARIO_SECONDS * 3,
        )  # fmt: skip
        result.output = ended.stdout + ended.stderr
        for file in Path(folder).rglob("stdout.txt"):
            result.output += file.read_text(encoding="utf-8", errors="replace")
        for file in Path(folder).rglob("stderr.txt"):
            result.output += file.read_text(encoding="utf-8", errors="replace")
        for file in Path(folder).rglob("checks.json"):
            checks: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
            for check in checks:
                match check.get("status"):
                    case "SUCCESS":
                        result.passed += 1
                    case "FAILURE" | "WARNING":
                        reason = check.get("errorMessage") or check.get("description") or ""
                        result.failed.append(f"{check.get('id')}: {reason}")
                    case _:
                        pass
    return result


def report(result: Result, known: int, *, is_verbose: bool) -> bool:
    """Print the result of a scenario with `known` failing checks; return whether it is as expected."""
    wrong = differences({result.scenario: len(result.failed)}, {result.scenario: known})
    is_empty = not result.passed and not result.failed
    is_right = not wrong and (not is_empty or result.scenario in EMPTY)
    mark = "no checks" if is_empty else f"{result.passed} passed, {len(result.failed)} failed"
    listed = " (known)" if known and is_right else ""
    print(f"{'ok  ' if is_right else 'BAD '} {result.suite} {result.scenario}: {mark}{listed}", flush=True)
    for line in (*wrong, *result.failed):
        print(f"       {line}")
    if is_verbose or not is_right:
        print("\n".join(f"       | {line}" for line in result.output.splitlines()[-40:]))
    return is_right


def main(arguments: Sequence[str]) -> int:
    """Run the suites; see the module."""
    folder, *wanted = arguments
    known = known_failures("mcp")
    is_right, failed, passed = True, 0, 0
    with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for suite, package in SUITES.items():
            program = Path(folder).resolve() / "node_modules" / package / "dist" / "index.js"
            names = [name for name in scenarios(program) if not wanted or name in wanted]
            count = len(names)
            for result in pool.map(run, [suite] * count, [program] * count, names):
                of_scenario = known[suite].get(result.scenario, 0)
                is_right = report(result, of_scenario, is_verbose=bool(wanted)) and is_right
                passed += result.passed
                failed += len(result.failed)
            print(f"{suite}: so far {passed} passed, {failed} failed\n", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
