"""Removes guards of the program one at a time, and checks that a test notices each.

``tests/mutants.toml`` lists the changes, each with the tests of which one must fail with it. Every change is made in a
copy of the source, which the tests import in place of the checkout; the checkout stays as it is. A changed module that
cannot be imported does not count as noticed. All tests have to pass without a change first.

As a program: ``python scripts/mutants.py [WORD ...]`` runs the mutants whose name or file contains all words, or all.
"""

import ast
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LIST = Path("tests") / "mutants.toml"
"""Path of the list below the root of the checkout."""
SIDE_BY_SIDE = 2
"""Number of mutants that are tested at a time, on two processors."""
TEST_SECONDS = 60
"""Maximum time in seconds of one test; a longer one has failed."""
KEPT = Path(".cache") / "mutants.json"
"""Path of the verdicts of former runs below the root of the checkout."""
RUN_SECONDS = 600
"""Maximum time in seconds of all tests of one mutant."""
_COPIED = "src"
_PASSED, _FAILED = 0, 1  # exit statuses of pytest
_FAILURE = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)


class MutantError(Exception):
    """The list of mutants does not fit the checkout; the text says which entry, and why."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of the program that removes a guard: ``old`` becomes ``new`` in ``file``, and one of ``tests`` fails.

    ``name`` says what is missing then. Tests are files or node ids of pytest.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


class Verdict(Enum):
    """Result of a mutant's tests."""

    NOTICED = "noticed"
    LIVED = "LIVED"
    BROKEN = "BROKEN"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Verdict about a mutant after ``seconds``, with the test that failed.

    ``output`` has the end of what pytest printed.
    """

    mutant: Mutant
    verdict: Verdict
    seconds: float
    failed: str
    output: str


def read_mutants(root: Path) -> tuple[Mutant, ...]:
    """Return the mutants in the list of a checkout.

    Raises:
        MutantError: an entry has other keys, or a name is repeated.
    """
    found: list[Mutant] = []
    for entry in tomllib.loads((root / LIST).read_text(encoding="utf-8"))["mutant"]:
        found.append(_mutant(entry))
    names = [mutant.name for mutant in found]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise MutantError(f"expected a name of its own for each mutant; repeated: {', '.join(repeated)}")
    return tuple(found)


def _mutant(entry: Mapping[str, Any]) -> Mutant:
    if set(entry) != {"name", "file", "old", "new", "tests"} or not entry["tests"]:
        raise MutantError(f"expected the keys name, file, old, new and tests, and a test, in the entry {dict(entry)}")
    return Mutant(entry["name"], entry["file"], entry["old"], entry["new"], tuple(entry["tests"]))


def mutated(mutant: Mutant, root: Path) -> str:
    """Return the text of the mutant's file in a checkout after the change.

    Raises:
        MutantError: the old text is not there exactly once, or the result is not Python.
    """
    path = root / mutant.file
    if not path.is_file():
        raise MutantError(f"{mutant.name}: there is no file {mutant.file}")
    text = path.read_text(encoding="utf-8")
    if (count := text.count(mutant.old)) != 1:
        raise MutantError(f"{mutant.name}: expected its old text once in {mutant.file}, found it {count} times")
    changed = text.replace(mutant.old, mutant.new)
    try:
        same = ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text))
    except SyntaxError as error:
        raise MutantError(f"{mutant.name}: {mutant.file} is not Python after the change: {error}") from error
    if same:
        raise MutantError(f"{mutant.name}: the change of {mutant.file} changes nothing that runs")
    return changed


def missing_tests(mutant: Mutant, root: Path) -> list[str]:
    """Return a mutant's tests that a checkout does not have."""
    return [test for test in mutant.tests if not _has_test(test, root)]


def _has_test(test: str, root: Path) -> bool:
    file, _, name = test.partition("::")
    path = root / file
    if not path.is_file():
        return False
    defined = re.escape(name.partition("[")[0])
    return (
        not name
        or re.search(rf"^(?:async )?def {defined}\(", path.read_text(encoding="utf-8"), re.MULTILINE) is not None
    )


class Trial:
    """Tests of a checkout on changed copies of its source, which are made below the folder ``place``."""

    def __init__(self, root: Path, place: Path) -> None:
        self._root = root
        self._place = place

    def test(self, mutant: Mutant) -> Outcome:
        """Run the tests of a mutant up to the first failure.

        Raises:
            MutantError: the change cannot be made.
        """
        began = time.monotonic()
        status, failed, output = self._run(mutant.tests, {mutant.file: mutated(mutant, self._root)}, "-x")
        if status == _PASSED:
            verdict = Verdict.LIVED
        elif status == _FAILED and failed:
            verdict = Verdict.NOTICED
        else:
            verdict = Verdict.BROKEN
        return Outcome(mutant, verdict, time.monotonic() - began, failed, output)

    def passes(self, tests: Sequence[str]) -> tuple[bool, str]:
        """Run tests without a change; return whether all pass, and the end of the output."""
        status, _, output = self._run(tests, {})
        return status == _PASSED, output

    def _run(self, tests: Sequence[str], changes: Mapping[str, str], *options: str) -> tuple[int, str, str]:
        """Return the exit status of pytest, the name of the first failed test and the end of the output."""
        folder = Path(tempfile.mkdtemp(dir=self._place))
        try:
            # With the times of the files, so that only what is changed is compiled again.
            shutil.copytree(self._root / _COPIED, folder / _COPIED)
            for file, text in changes.items():
                (folder / file).write_text(text, encoding="utf-8")
            given = ("-q", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}", *options)
            command = [sys.executable, "-m", "pytest", *given, "--hypothesis-seed=0", *tests]
            variables = os.environ | {
                "PYTHONPATH": str(folder / _COPIED),
                "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis"),
            }
            try:
                ended = subprocess.run(
                    command,
                    cwd=self._root,
                    env=variables,
                    capture_output=True,
                    text=True,
                    timeout=RUN_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return -1, "", f"the tests did not end within {RUN_SECONDS} s"
            return ended.returncode, _failed(ended.stdout), (ended.stdout + ended.stderr)[-4000:]
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _failed(output: str) -> str:
    """Return the first test that failed itself, not in its fixtures or its collection; empty if none did."""
    found = _FAILURE.search(output)
    return found[1].rpartition("::")[2] if found is not None else ""


def kept_verdicts(root: Path) -> dict[str, str]:
    """Return the last verdicts by the names of mutants whose file and tests are still as they were."""
    try:
        kept: dict[str, dict[str, str]] = json.loads((root / KEPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {
        each.name: found["verdict"]
        for each in read_mutants(root)
        if (found := kept.get(each.name)) is not None and found["digest"] == _digest(each, root)
    }


def keep_verdicts(outcomes: Sequence[Outcome], root: Path) -> None:
    """Keep verdicts for :func:`kept_verdicts`, beside the verdicts of other mutants."""
    try:
        kept: dict[str, dict[str, str]] = json.loads((root / KEPT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        kept = {}
    for each in outcomes:
        kept[each.mutant.name] = {"verdict": each.verdict.value, "digest": _digest(each.mutant, root)}
    (root / KEPT).parent.mkdir(exist_ok=True)
    (root / KEPT).write_text(json.dumps(kept, indent=1), encoding="utf-8")


def _digest(mutant: Mutant, root: Path) -> str:
    """Return a digest of a mutant, the file that it changes, and the files of its tests."""
    content = hashlib.sha256(repr(mutant).encode())
    for name in (mutant.file, *sorted({test.partition("::")[0] for test in mutant.tests})):
        path = root / name
        content.update(path.read_bytes() if path.is_file() else b"")
    return content.hexdigest()


def chosen(mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Return the mutants whose name or file contains all words, in any case."""
    return [each for each in mutants if all(word.lower() in f"{each.name} {each.file}".lower() for word in words)]


def main(words: Sequence[str], root: Path = ROOT) -> int:
    """Print the verdict about each chosen mutant; return 0 if all were noticed, otherwise 1."""
    began = time.monotonic()
    try:
        mutants = chosen(read_mutants(root), words)
        faults = [f"{each.name}: there is no test {test}" for each in mutants for test in missing_tests(each, root)]
        for each in mutants:
            mutated(each, root)
    except MutantError as error:
        mutants, faults = [], [str(error)]
    if faults or not mutants:
        print("\n".join(faults or [f"no mutant has {' and '.join(words)} in its name or file"]))
        return 1
    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(SIDE_BY_SIDE) as threads:
        trial = Trial(root, Path(place))
        tests = sorted({test for each in mutants for test in each.tests})
        halves = [half for half in (tests[::SIDE_BY_SIDE], tests[1::SIDE_BY_SIDE]) if half]
        for passed, output in threads.map(trial.passes, halves):
            if not passed:
                print(output)
                print("error: some of these tests fail without a change; mend them before mutants mean anything")
                return 1
        print(
            f"all tests of {len(mutants)} mutants pass without a change ({time.monotonic() - began:.0f} s)", flush=True
        )
        outcomes: list[Outcome] = []
        for outcome in threads.map(trial.test, mutants):
            outcomes.append(outcome)
            mutant = outcome.mutant
            by = f" <- {outcome.failed}" if outcome.failed else f" ({mutant.file})"
            print(f"{outcome.verdict.value:8} {outcome.seconds:5.1f} s  {mutant.name}{by}", flush=True)
            if outcome.verdict is Verdict.BROKEN:
                print(outcome.output)
    keep_verdicts(outcomes, root)
    noticed = sum(outcome.verdict is Verdict.NOTICED for outcome in outcomes)
    print(f"{noticed} of {len(mutants)} noticed in {time.monotonic() - began:.0f} s")
    return 0 if noticed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
