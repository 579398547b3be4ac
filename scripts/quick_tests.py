"""Runs the tests that are nearest to what has changed, for as long as a developer waits between two edits.

Files of tests/unit and tests/contract run in the order of their distance from the changed files: a changed test first,
then tests that import a changed module, then those that import a module which imports one, and so on. When the time is
over, the others are left to ``make test``, and their number is said. Without a change in the working tree, the last
commit counts. Options are passed on to pytest.

It does not replace ``make test``: it reads imports as text, and does not know which test starts which program.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
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
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([\w.]+))", re.MULTILINE
)
_NAME = re.compile(r"\w+")
_PLACES = ("src", "tests", "scripts", "examples")
"""Folders from which modules are imported."""


def modules_of(root: Path) -> Mapping[str, Path]:
    """Return the files of all modules, by the names under which they are imported."""
    found: dict[str, Path] = {}
    for place in _PLACES:
        for path in (root / place).rglob("*.py"):
            if "node_modules" in path.parts:
                continue
            parts = path.relative_to(root / place).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(text: str) -> Iterator[str]:
    """Yield the names of modules that a text imports, also those that may be names in a module."""
    for match in _IMPORT.finditer(text):
        if match[3] is not None:
            yield match[3]
            continue
        yield match[1]
        yield from (f"{match[1]}.{name}" for name in _NAME.findall(match[2]))


def distances(modules: Mapping[str, Path], changed: Collection[Path]) -> Mapping[Path, int]:
    """Return how many imports lead from each file to a changed one; files that none leads from are left out."""
    importers: defaultdict[Path, set[Path]] = defaultdict(set)
    for path in modules.values():
        for name in imports_of(path.read_text(encoding="utf-8")):
            if (target := modules.get(name)) is not None and target != path:
                importers[target].add(path)
    found = dict.fromkeys(changed, 0)
    waiting = deque(found)
    while waiting:
        path = waiting.popleft()
        for importer in importers[path]:
            if importer not in found:
                found[importer] = found[path] + 1
                waiting.append(importer)
    return found


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
    near = distances(modules_of(root), changed)
    tests = [path for place in ("unit", "contract") for path in (root / "tests" / place).rglob("test_*.py")]
    return sorted(tests, key=lambda path: (near.get(path, 1_000), path.stat().st_size, path))


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
    """Run the tests; return 1 if one of them failed."""
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
