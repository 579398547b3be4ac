"""Runs the tests that are nearest to what has changed, for as long as a developer waits between two edits.

Files of tests/unit and tests/contract run in the order of ``scripts/nearest_tests.py``: a changed test first,
then tests with the path of a changed module, with an import of it, and of its package. When the time is over, the
others are left to ``make test``, and their number is said. Without a change in the working tree, the last commit
counts. Options are passed on to pytest. ``quick_tests.py --of FILE`` prints the nearest tests of a module instead.

It does not replace ``make test``: it reads imports as text, and does not know which test starts which program.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import nearest_tests
from nearest_tests import ROOT, Checkout

SECONDS = 45.0
"""Maximum time in seconds, with everything."""
LAST_START = 0.55
"""Share of the time after which no more files are begun."""
CUT_OFF = 0.93
"""Share of the time after which what still runs is ended."""
PROCESSES = 3
"""Number of processes side by side, on two processors."""
BATCH_BYTES = 40_000
"""Size of the test files that one process gets at a time; starting one takes about two seconds."""


def changed_files(root: Path) -> Sequence[Path]:
    """Return the files that differ from the last commit; if none does, the files of that commit."""
    own = [*_git(root, "diff", "--name-only", "HEAD"), *_git(root, "ls-files", "--others", "--exclude-standard")]
    names = own or _git(root, "diff", "--name-only", "HEAD~1", "HEAD")
    return [root / name for name in names if (root / name).is_file()]


def _git(root: Path, *arguments: str) -> list[str]:
    return subprocess.run(
        ["git", "-C", root, *arguments], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def ordered_tests(root: Path, changed: Collection[Path]) -> list[Path]:
    """Return the test files of tests/unit and tests/contract: those nearest to a change first, then by their size."""
    places = root / "tests/unit", root / "tests/contract"
    return [test for _, test in Checkout(root).ordered(changed) if any(test.is_relative_to(each) for each in places)]


def batches(tests: Iterable[Path]) -> Iterator[list[Path]]:
    """Yield test files in groups of about `BATCH_BYTES`, in their order."""
    group: list[Path] = []
    size = 0
    for path in tests:
        group.append(path)
        size += path.stat().st_size
        if size >= BATCH_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


class Run:
    """A run of pytest over some files."""

    def __init__(self, files: Sequence[Path], options: Sequence[str]) -> None:
        self.files = files
        self.output = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by `end`
        given = ("-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick", "-m", "not slow", *options)
        command = [sys.executable, "-m", "pytest", *given, *map(str, files)]
        self.process = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT, cwd=ROOT)

    def end(self) -> tuple[int, str]:
        """Return the exit status of the ended process and its output."""
        self.output.seek(0)
        text = self.output.read()
        self.output.close()
        return self.process.returncode, text


def main(options: Sequence[str]) -> int:
    """Run the tests, or print those that belong to modules; return 1 if one failed or a module has none."""
    if options and options[0] == "--of":
        return nearest_tests.main(options[1:])
    began = time.monotonic()
    changed = changed_files(ROOT)
    tests = ordered_tests(ROOT, changed)
    waiting = deque(batches(tests))
    running: list[Run] = []
    ended, cut, passed, failures = 0, 0, 0, list[str]()
    while running or waiting:
        elapsed = (time.monotonic() - began) / SECONDS
        if elapsed > LAST_START:
            waiting.clear()
        while waiting and len(running) < PROCESSES:
            running.append(Run(waiting.popleft(), options))
        for run in list(running):
            if run.process.poll() is None:
                if elapsed > CUT_OFF:
                    run.process.kill()
                    run.process.wait()
                    cut += len(run.files)
                    running.remove(run)
                    run.end()
                continue
            running.remove(run)
            code, text = run.end()
            ended += len(run.files)
            passed += sum(int(number) for number in re.findall(r"(\d+) passed", text))
            if code not in (0, 5):  # 5: all of these tests are slow
                failures.append(text)
        time.sleep(0.02)
    print("".join(failures), end="")
    left = len(tests) - ended
    names = ", ".join(str(path.relative_to(ROOT)) for path in changed[:3]) + (" ..." if len(changed) > 3 else "")
    rest = f"{left} files were left to make test{f' ({cut} were cut off)' if cut else ''}"
    print(
        f"{passed} tests passed, {len(failures)} runs failed, in {time.monotonic() - began:.0f} s: {ended} files, those"
        f" nearest to {names or 'nothing'}. {rest}."
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
