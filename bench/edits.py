"""Edits of a model with fifteen kinds of mistake, over real files: the share that `replace` carries out as intended."""

import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from bench.edit_cases import KINDS, EditCase, edit_cases, refused_cases
from bench.figures import Figure, at_most
from isthmus.tools.edits.replacement import Replaced, replace_text

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / ".venv" / "lib", ROOT / "tests" / "peers" / "node" / "node_modules")
SUFFIXES = (".py", ".ts", ".js", ".mjs", ".css", ".proto", ".md", ".c", ".cc", ".h", ".pyi")
MAXIMUM_FILES_OF_A_KIND = 60
SEED = 20261126


def corpus(folders: Sequence[Path] = FOLDERS) -> list[Path]:
    """Return files of the packages that are installed below the folders, a limited number of each language."""
    chance = random.Random(SEED)  # noqa: S311 - a seed repeats the choice
    result: list[Path] = []
    for suffix in SUFFIXES:
        found = sorted(
            file
            for folder in folders
            for file in folder.rglob(f"*{suffix}")
            if file.is_file() and 2_000 < file.stat().st_size < 200_000 and ".min." not in file.name
        )
        result += chance.sample(found, min(len(found), MAXIMUM_FILES_OF_A_KIND))
    return result


def outcome(case: EditCase) -> str:
    """Return ``right``, ``wrong`` or ``refused``."""
    found = replace_text(case.text, case.old, case.new)
    if not isinstance(found, Replaced):
        return "right" if case.intended is None else "refused"
    return "right" if found.text == case.intended else "wrong"


def run(rounds: int | None) -> list[Figure]:
    """Run forty edits of each kind for each round, and 200 that must be refused."""
    files = corpus()
    counts: Counter[tuple[str, str]] = Counter()
    seconds: list[float] = []
    for number in range(rounds or 1):
        cases = [*edit_cases(files, 40, SEED + number), *refused_cases(files, 200, SEED + number)]
        for case in cases:
            begin = time.perf_counter()
            counts[case.kind, outcome(case)] += 1
            seconds.append(time.perf_counter() - begin)
    for kind in (*KINDS, "absent", "two places"):
        found = "  ".join(f"{result} {counts[kind, result]:4}" for result in ("right", "wrong", "refused"))
        print(f"  {kind:16} {found}")
    total = sum(counts[kind, result] for kind in KINDS for result in ("right", "wrong", "refused"))
    right = 100 * sum(counts[kind, "right"] for kind in KINDS) / total
    seconds.sort()
    return [
        Figure("right", right, "%", budget=">= 97 %", met=right >= 97),
        at_most("wrong", sum(counts[kind, "wrong"] for kind in KINDS), "edits", 0),
        at_most(
            "applied that had to be refused", sum(counts[k, "wrong"] for k in ("absent", "two places")), "edits", 0
        ),
        at_most("an edit, 95th percentile", 1000 * seconds[int(len(seconds) * 0.95)], "ms", 50),
        Figure("an edit, longest", 1000 * seconds[-1], "ms"),
    ]
