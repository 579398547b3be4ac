"""A session of many turns, the same for every client: files to read, edits, commands, and events beside the prompts."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

FULL: Sequence[str] = (
    *("talk", "read", "read", "edit", "read", "pair", "shell", "read", "plan", "edit"),
    *("remember", "read", "image", "pair", "edit", "read", "plan", "read", "shell", "pause"),
    *("edit", "read", "pair", "talk", "remember", "read", "edit", "compact", "read", "edit"),
    *("read", "shell", "plan", "edit", "pair", "talk", "remember", "read", "edit", "talk"),
)
"""Kinds of the 40 turns; ``pair`` reads two files at once, ``pause`` and ``compact`` happen before a file is read."""
QUICK: Sequence[str] = ("talk", "read", "edit", "pair", "shell", "plan", "remember", "image", "compact", "read")
LINES, LINE_BYTES = 400, 72
LINE_TOKENS = LINE_BYTES // 4
TURN_SECONDS, PAUSE_SECONDS = 90, 20 * 60
"""Seconds between two prompts, and before the prompt after a pause, on the clock of the caches."""
IMAGE = "picture.png"
SEED = 20_261_130
_WORDS = (
    "amber",
    "basin",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "haven",
    "inlet",
    "jetty",
    "knoll",
    "lagoon",
    "maple",
    "north",
    "ocean",
    "prairie",
)
_FILES: Mapping[str, int] = {"read": 1, "pair": 2, "plan": 1, "remember": 1, "pause": 1, "compact": 1}


@dataclass(frozen=True, slots=True)
class Read:
    """A call that reads a file."""

    path: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A call that replaces one line of a file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Shell:
    """A call that runs a command."""

    command: str


@dataclass(frozen=True, slots=True)
class Look:
    """A call that reads an image."""

    path: str


Action: TypeAlias = Read | Edit | Shell | Look


@dataclass(frozen=True, slots=True)
class Step:
    """A prompt of the user, and the calls of the model in each of its messages before the last one."""

    number: int
    kind: str
    prompt: str
    calls: tuple[tuple[Action, ...], ...] = ()

    @property
    def mark(self) -> str:
        """Text by which the prompt is known."""
        return f"Step {self.number}:"

    @property
    def answer(self) -> str:
        """Last message of the model."""
        return f"Step {self.number} is done. " + " ".join(_WORDS) + "."

    @property
    def seconds_before(self) -> int:
        """Time since the prompt before."""
        return PAUSE_SECONDS if self.kind == "pause" else TURN_SECONDS


def session(kinds: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps of a session."""
    found: list[Step] = []
    files = 0
    for number, kind in enumerate(kinds, 1):
        paths = [file_name(files + place) for place in range(_FILES.get(kind, 0))]
        files += len(paths)
        match kind:
            case "talk":
                wish, calls = "say what you think of this project so far, without a look at its files.", ()
            case "edit":
                path = file_name(files - 1)
                # Each edit of a file changes another line.
                line = number
                old = line_of(files - 1, line)
                new = old.replace(" = ", " = 7 * ", 1)
                wish, calls = f"change value {line} of {path}.", ((Edit(path, old, new),),)
            case "shell":
                wish, calls = "count the files.", ((Shell("ls parts | wc -l"),),)
            case "image":
                wish, calls = f"look at {IMAGE}.", ((Look(IMAGE),),)
            case _:
                wish, calls = f"read {' and '.join(paths)}.", (tuple(Read(path) for path in paths),)
        found.append(Step(number, kind, f"Step {number}: please {wish}", calls))
    return tuple(found)


def file_name(number: int) -> str:
    """Return the path of a file in the workspace."""
    return f"parts/part_{number:02d}.py"


def line_of(file: int, line: int) -> str:
    """Return a line of a file, which no other line of the workspace equals; without its end."""
    chance = random.Random(SEED + 1_000 * file + line)  # noqa: S311 - the same text in each run
    text = f'value_{file:02d}_{line:04d} = "{" ".join(chance.choices(_WORDS, k=9))}"'
    return text[: LINE_BYTES - 2].ljust(LINE_BYTES - 2, "-") + '"'


def text_of(file: int) -> str:
    """Return the text of a file."""
    return "".join(f"{line_of(file, line)}\n" for line in range(1, LINES + 1))


def make_workspace(folder: Path, kinds: Sequence[str], memory: str) -> None:
    """Write the files of a session, with a file of the user's instructions of the name ``memory``."""
    (folder / "parts").mkdir(parents=True)
    for number in range(sum(_FILES.get(kind, 0) for kind in kinds)):
        (folder / file_name(number)).write_text(text_of(number), encoding="utf-8")
    lines = [f"- Rule {number}: keep the style of the file." for number in range(1, 11)]
    (folder / memory).write_text("\n".join(["# Instructions", *lines, ""]), encoding="utf-8")


def remember(folder: Path, memory: str, step: Step) -> None:
    """Add a line to the user's instructions, as an editor does."""
    with (folder / memory).open("a", encoding="utf-8") as file:
        file.write(f"- Remembered before step {step.number}: the tests are run with make.\n")


def wrong_edits(folder: Path, steps: tuple[Step, ...]) -> Iterator[str]:
    """Yield the edits of a session that are not in their files."""
    for step in steps:
        for action in (action for calls in step.calls for action in calls):
            if isinstance(action, Edit) and action.new not in (folder / action.path).read_text(encoding="utf-8"):
                yield f"step {step.number}: {action.path}"
