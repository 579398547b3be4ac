"""Runs pytest in ``--processes``, and gives a failed test with a real program a second try, alone, after all others.

A test in tests/peers or tests/chaos that passes on the second try is reported as unstable, with its first failure, and
does not fail the run, unless there are more than `MAXIMUM_UNSTABLE`. A failing test anywhere else fails the run, and so
does any other fault (a module that cannot be imported, a wrong option). The other arguments and the exit codes are
pytest's.
"""

import subprocess
import sys
from collections.abc import Collection

import pytest

import forked_tests

MAXIMUM_UNSTABLE = 3
"""Maximum number of failing tests that get a second try in one run; more are a fault and not chance."""
REAL_PROGRAMS = ("tests/peers/", "tests/chaos/")
"""Folders whose tests depend on other programs and on the load of the machine."""


class FailureRecorder:
    """Recorder of the first failure of each test, including tests that ran in other processes."""

    def __init__(self) -> None:
        self.failures: dict[str, str] = {}
        """Text of each failure by the node id of its test, in the order of the run."""
        self.incomplete = False
        """Whether there are tests that could not be collected."""

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a module that could not be collected."""
        self.incomplete |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record a failed set-up, call or tear-down."""
        if report.failed:
            self.failures.setdefault(report.nodeid, report.longreprtext)


class RequirementKeeper:
    """Guard of the tests that are left out of a run: an extended test shows only what others in the run show too."""

    def __init__(self) -> None:
        self._extended: dict[str, str] = {}

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Record the requirements of extended tests that are left out, each with a test of it."""
        self._extended |= {name: item.nodeid for item in items if "extended" in item.keywords for name in _ids(item)}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Raise UsageError for a requirement that no test of a run of all others shows."""
        options = session.config.option
        if not options.keyword and set(options.file_or_dir) <= {"tests"}:
            shown = {name for item in session.items for name in _ids(item)}
            alone = [f"{name} ({test})" for name, test in self._extended.items() if name not in shown]
            if alone:
                raise pytest.UsageError(
                    f"{', '.join(alone)}: shown by extended tests alone. Leave one test of each in every run."
                )


def _ids(item: pytest.Item) -> set[str]:
    """Return the ids of the requirements that a test shows."""
    return {name for mark in item.iter_markers("requirement") for name in mark.args}


def may_try_again(failures: Collection[str]) -> bool:
    """Return whether the failed tests with these node ids get a second try."""
    return 0 < len(failures) <= MAXIMUM_UNSTABLE and all(name.startswith(REAL_PROGRAMS) for name in failures)


def main(arguments: list[str]) -> int:
    """Run the tests and return pytest's exit code; unstable tests count as passed."""
    recorder = FailureRecorder()
    code = pytest.main(arguments, plugins=[recorder, RequirementKeeper(), forked_tests])
    if code != pytest.ExitCode.TESTS_FAILED or recorder.incomplete or not may_try_again(recorder.failures):
        return int(code)
    print(f"\nFailed, and run once more, alone: {', '.join(recorder.failures)}", flush=True)
    # In a separate process, because the modules of the tests are already loaded in this one.
    again = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *recorder.failures], check=False)
    if again.returncode != pytest.ExitCode.OK:
        return int(code)
    for name, failure in recorder.failures.items():
        print(
            f"\nunstable: {name} failed in the first run and passed alone. Its first failure:\n\n{failure}", flush=True
        )
    print(f"\n{len(recorder.failures)} unstable, as named above: fix them before anything new.", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
