"""Run pytest, and give a test with a real program that fails a second try: alone, when all others have ended.

A test in tests/peers or tests/chaos that passes on the second try is named as unstable, with its first failure, and
does not fail the run: at most `MAXIMUM_UNSTABLE` a run. A failing test anywhere else fails the run, and so does
everything that is not a failing test (a module that cannot be imported, a wrong option). The arguments are those of
pytest; its exit codes are ours.
"""

import subprocess
import sys
from collections.abc import Collection

import pytest

MAXIMUM_UNSTABLE = 3
"""Failing tests that get a second try in one run; more of them are a fault and not chance."""
REAL_PROGRAMS = ("tests/peers/", "tests/chaos/")
"""Folders whose tests depend on programs that are not ours and on how busy the machine is."""


class FailureRecorder:
    """Keeps the first failure of each test, also of tests that ran in other processes."""

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}
        """Text of the failure by the node id of its test, in the order of the run."""
        self.incomplete = False
        """Whether there are tests that could not be collected."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Take note of a module that could not be collected."""
        self.incomplete |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take note of a failed set-up, call or tear-down."""
        if report.failed:
            self.failures.setdefault(report.nodeid, report.longreprtext)


def may_try_again(failures: Collection[str]) -> bool:
    """Return whether the failed tests, given by their node ids, get a second try."""
    return 0 < len(failures) <= MAXIMUM_UNSTABLE and all(name.startswith(REAL_PROGRAMS) for name in failures)


def main(arguments: list[str]) -> int:
    """Run the tests; return pytest's exit code: 0 also where some tests were unstable."""
    recorder = FailureRecorder()
    code = pytest.main(arguments, plugins=[recorder])
    if code != pytest.ExitCode.TESTS_FAILED or recorder.incomplete or not may_try_again(recorder.failures):
        return int(code)
    print(f"\nFailed, and run once more, alone: {', '.join(recorder.failures)}", flush=True)
    # In a process of its own: the modules of the tests are loaded in this one.
    again = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *recorder.failures], check=False)
    if again.returncode != pytest.ExitCode.OK:
        return int(code)
    for name, failure in recorder.failures.items():
        print(
            f"\nunstable: {name} failed in the first run and passed alone. Its first failure:\n\n{failure}", flush=True
        )
    print(f"\n{len(recorder.failures)} unstable, as named above: mend them before anything new.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
