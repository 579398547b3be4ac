"""The page counts the hunks of a change as every other surface does, so that a number means the same hunk."""

import json
import random
import subprocess
from pathlib import Path

from isthmus.text.hunks import comparable, hunks_between, with_hunks

ROOT = Path(__file__).parents[2]
PAIRS = 3_000
SCRIPT = """
import { comparable, editorHunks, lineHunks, splitLines } from "./frontend/src/diff/line-diff.ts";
let input = "";
for await (const part of process.stdin) input += part;
const places = (hunks) => hunks.map(({ oldFrom, oldTo, newFrom, newTo }) => [oldFrom, oldTo, newFrom, newTo]);
console.log(JSON.stringify(JSON.parse(input).map(([before, after]) => {
  const old = comparable(before, after), lines = old.split("\\n"), hunks = editorHunks(old, after);
  const keptOdd = after.split("\\n");
  for (const [index, { oldFrom, oldTo, newFrom, newTo }] of [...hunks.entries()].reverse()) {
    if (index % 2 === 0) keptOdd.splice(newFrom, newTo - newFrom, ...lines.slice(oldFrom, oldTo));
  }
  return [places(lineHunks(splitLines(old), splitLines(after))), keptOdd.join("\\n")];
})));
"""


def _random_pairs() -> list[tuple[str, str]]:
    """Return texts and what edits made of them, and texts that have nothing to do with each other."""
    chance = random.Random(1)  # noqa: S311
    words = ["", "a", "b", "}", "    return x", "é", "\ufeffa"]
    pairs: list[tuple[str, str]] = []
    for number in range(PAIRS):
        old = [chance.choice(words) + chance.choice(["", str(chance.randrange(20))]) for _ in range(number % 40)]
        new = [chance.choice(words) for _ in range(number % 30)] if number % 3 == 0 else _edited(old, words, chance)
        pairs.append((_text(old, chance), _text(new, chance)))
    return pairs


def _edited(lines: list[str], words: list[str], chance: random.Random) -> list[str]:
    result = list(lines)
    for _ in range(chance.randrange(1, 7)):
        at = chance.randrange(len(result) + 1)
        result[at : at + chance.randrange(4)] = [chance.choice(words) for _ in range(chance.randrange(4))]
    return result


def _text(lines: list[str], chance: random.Random) -> str:
    return "\n".join(lines) + "\n" * chance.randrange(2)


def _long_pairs() -> list[tuple[str, str]]:
    """Return texts in which lines occur very often, and texts that are too long to be compared in full."""
    chance = random.Random(2)  # noqa: S311
    often = [chance.choice(["}", "", "x", str(number)]) for number in range(900)]
    moved = [*often[500:], *often[:500]]
    numbered = [f"line {number}" for number in range(6_000)]
    changed = [line for number, line in enumerate(numbered) if number % 7] + ["end"]
    shuffled = chance.sample(numbered, len(numbered))
    same = ["same"] * 3_000
    return [
        ("\n".join(old), "\n".join(new))
        for old, new in (
            (often, moved),
            (often, _edited(often, ["}", "y"], chance)),
            (numbered, changed),
            (numbered, shuffled),
            (same, [*same[:-1], "other", *same]),
            ([*same, "a", *same], ["b", *same, "c"]),
        )
    ]


def test_the_page_has_the_same_hunks_as_every_other_surface() -> None:
    pairs = [*_random_pairs(), *_long_pairs(), ("", ""), ("", "a"), ("a", ""), ("a", "a\n"), ("\ufeffa\nb", "a\nc\n")]
    command = [str(ROOT / ".venv/bin/node"), "--input-type=module", "--eval", SCRIPT]
    ran = subprocess.run(
        command, cwd=ROOT, input=json.dumps(pairs), capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    for (before, after), (places, kept_odd) in zip(pairs, json.loads(ran.stdout), strict=True):
        hunks = hunks_between(before, after)
        assert places == [[hunk.old_start, hunk.old_end, hunk.new_start, hunk.new_end] for hunk in hunks]
        taken = [hunk.number for hunk in hunks if hunk.number % 2 == 0]
        assert kept_odd == (with_hunks(before, after, taken) if hunks else after)
        assert hunks or comparable(before, after) == after
