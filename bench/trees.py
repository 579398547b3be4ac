"""A tree of a million files: completion, glob and grep_search beside plain `rg`, and the memory of a whole run.

The tree is made among the temporary files, or taken from the folder in BENCH_TREE, and made there if that is empty.
"""

import json
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench.figures import Figure, at_most, beside
from bench.processes import clean_home, measure, program, python_program

ROUNDS = 3
WIDTH = 100
"""Number of folders in the tree, of folders in each, and of files in each of these."""
QUICK_WIDTH = 28
"""The same for the short form: about 20,000 files."""
SECONDS = 900.0
"""Maximum time of the measurement, on a busy machine with a cold disk."""
SCRIPT = """
name: trees
scenarios:
  - prompt: ''
    replies:
      - call: {name: glob, arguments: {pattern: '**/mod01*/file_02?.py'}}
      - call: {name: grep_search, arguments: {pattern: needle_7_}}
      - text: Done.
"""


def run(rounds: int | None) -> list[Figure]:
    """Measure in a million files."""
    return _run(rounds or ROUNDS, WIDTH)


def run_quick() -> list[Figure]:
    """Measure in 20,000 files."""
    return _run(ROUNDS, QUICK_WIDTH)


def make_tree(folder: Path, width: int) -> None:
    """Make a tree of empty files, with a line of text in one file of each folder."""
    for outer in range(width):
        for inner in range(width):
            place = folder / f"pkg{outer:03}" / f"mod{inner:03}"
            place.mkdir(parents=True)
            for number in range(width):
                os.close(os.open(place / f"file_{number:03}.py", os.O_CREAT | os.O_WRONLY, 0o644))
            (place / "file_000.py").write_text(f"def needle_{outer}_{inner}():\n    return 1\n", encoding="utf-8")


def _run(rounds: int, width: int) -> list[Figure]:
    with clean_home() as environment, ExitStack() as stack:
        given = os.environ.get("BENCH_TREE")
        made = given or stack.enter_context(tempfile.TemporaryDirectory(prefix="isthmus-bench-tree-"))
        folder = Path(made).resolve()
        if not any(folder.iterdir()):
            make_tree(folder, width)
        command = python_program("bench.programs.tree_client", str(folder), str(rounds))
        found: dict[str, float] = json.loads(measure(command, environment, SECONDS).output.strip().split("\n")[-1])
        script = Path(environment["HOME"]) / "script.yaml"
        script.write_text(SCRIPT, encoding="utf-8")
        in_tree = {**environment, "PWD": str(folder)}
        whole = measure([program("isthmus"), "-p", "search", "-m", f"scripted:{script}"], in_tree)
    if "Done." not in whole.output:
        raise RuntimeError(f"isthmus did not come to its end: {whole.output[-500:]}")
    return [
        Figure("files", found["files"], ""),
        Figure("first listing", found["listing"], "s"),
        Figure("listing again", found["listing again"], "s"),
        at_most("completion in a folder before it", found["completion before the listing"], "s", 0.5),
        at_most("first completion after it", found["first completion"], "s", 0.3),
        at_most("slowest completion after it", found["slowest completion"], "s", 0.3),
        Figure("glob", found["glob"], "s"),
        beside("grep_search", found["grep"], "s", "rg", found["grep, rg"], at_most=1.3),
        beside("grep_search, no match", found["grep, no match"], "s", "rg", found["grep, no match, rg"], at_most=1.3),
        at_most("memory with the index", found["memory"], "MiB", 200),
        at_most("isthmus -p with glob and grep_search, memory", whole.memory, "MiB", 200),
        Figure("isthmus -p with glob and grep_search", whole.wall, "s"),
    ]
