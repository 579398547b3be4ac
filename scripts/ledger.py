"""The requirement ledger: what the protocol documents require, and whether a test shows it.

`tests/requirements.toml` has one table per requirement. Its state is `covered` (a test carries the id), `pending` (no
test does yet) or `divergence` (Isthmus departs from the document on purpose; the reason says how). This module loads
the ledger, compares it with the marks of the tests, prints it, and with `--update` sets covered and pending from the
marks. Divergences are only written by hand, with their reasons.
"""

import argparse
import json
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import cast

from requirement_marks import MarkedTest, Marks, read_marks

ROOT = Path(__file__).resolve().parent.parent
KEYS = frozenset({"section", "text", "level", "part", "wire", "state"})
HEADER = """\
# Every requirement of the protocol documents that Isthmus implements, and its state; `make ledger` prints it.
#
# GEM  Gemini CLI: IDE companion interface          A2A  A2A: development-tool extension (RFC)
# CLD  Claude Code: IDE protocol                    MCP  Gemini CLI: MCP servers (the host's side)
# ZH   the Chinese text of the RFC, where it differs
# TCK  A2A 1.0: what a server must, by the ids of the A2A project's kit
#
# level  must | should | may | fact (describes the other side, or is an example)
# part   the part of the work that brings it
# wire   true: about what goes over the wire, so only a test with a real socket or a golden transcript can show it,
#        never one below tests/unit
# state  covered | pending: set by `make ledger-update` from the marks of the tests
#        divergence: Isthmus departs on purpose, for the reason given; set by hand
"""


class LedgerError(Exception):
    """`tests/requirements.toml` is not in the documented form; the message names the table and the key."""


class State(StrEnum):
    """State of a requirement."""

    COVERED = "covered"
    PENDING = "pending"
    DIVERGENCE = "divergence"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement; the keys are explained at the head of `tests/requirements.toml`."""

    id: str
    section: str
    text: str
    level: str
    part: int
    wire: bool
    state: State
    reason: str | None = None

    @property
    def document(self) -> str:
        """Document of the requirement: the letters before the number in its id."""
        return self.id.partition("-")[0]


def ledger_file(root: Path) -> Path:
    """Return the path of the ledger of the checkout at `root`."""
    return root / "tests" / "requirements.toml"


def load(root: Path) -> list[Requirement]:
    """Return the requirements in the order of the file. Raises LedgerError."""
    path = ledger_file(root)
    try:
        tables: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise LedgerError(f"{path} cannot be read: {error}") from error
    return [_requirement(name, table) for name, table in tables.items()]


def _requirement(name: str, table: object) -> Requirement:
    keys: dict[str, object] = cast("dict[str, object]", table) if isinstance(table, dict) else {}
    diverges = keys.get("state") == State.DIVERGENCE
    match keys:
        case {
            "section": str(section),
            "text": str(text),
            "level": ("must" | "should" | "may" | "fact") as level,
            "part": int(part),
            "wire": bool(wire),
            "state": ("covered" | "pending" | "divergence") as state,
        } if keys.keys() == (KEYS | {"reason"} if diverges else KEYS):
            reason = str(keys["reason"]).strip() if diverges else None
            if reason == "":
                raise LedgerError(f"[{name}] diverges without a reason")
            return Requirement(name, section, text, str(level), part, wire, State(str(state)), reason)
        case _:
            expected = ", ".join(sorted(KEYS))
            raise LedgerError(
                f"[{name}] needs {expected} with the values that the head of the file allows; "
                "and a reason exactly when its state is divergence"
            )


def render(requirements: Iterable[Requirement]) -> str:
    """Return the text of `tests/requirements.toml`; `load` of it gives the same requirements."""
    return HEADER + "".join(_render_one(requirement) for requirement in requirements)


def _render_one(requirement: Requirement) -> str:
    lines = [
        "",
        f"[{requirement.id}]",
        f"section = {_toml_string(requirement.section)}",
        f"text = {_toml_string(requirement.text)}",
        f'level = "{requirement.level}"',
        f"part = {requirement.part}",
        f"wire = {str(requirement.wire).lower()}",
        f'state = "{requirement.state}"',
    ]
    if requirement.reason is not None:
        lines.append(f"reason = {_toml_string(requirement.reason)}")
    return "\n".join((*lines, ""))


def _toml_string(text: str) -> str:
    # A JSON string is a TOML basic string, but for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def tests_by_id(marks: Marks) -> dict[str, list[MarkedTest]]:
    """Return the tests by the ids that they carry."""
    found: dict[str, list[MarkedTest]] = {}
    for test in marks.tests:
        for name in test.ids:
            found.setdefault(name, []).append(test)
    return found


def problems(requirements: Sequence[Requirement], marks: Marks) -> list[str]:
    """Return a line for each difference between the ledger and the marks of the tests."""
    known = {requirement.id: requirement for requirement in requirements}
    tests = tests_by_id(marks)
    found = list(marks.problems)
    for name, carriers in tests.items():
        requirement = known.get(name)
        if requirement is None:
            found += [f"{test}: unknown requirement {name}" for test in carriers]
        elif requirement.wire:
            found += [
                f"{test}: {name} is about the wire: a unit test cannot show it, only a socket or a transcript can"
                for test in carriers
                if test.path.parts[:2] == ("tests", "unit")
            ]
    for requirement in requirements:
        carried = requirement.id in tests
        if requirement.state is State.COVERED and not carried:
            found.append(f"{requirement.id} is covered, but no test carries it (make ledger-update)")
        if requirement.state is State.PENDING and carried:
            found.append(f"{requirement.id} is pending, but {tests[requirement.id][0]} carries it (make ledger-update)")
    return found


def updated(requirements: Iterable[Requirement], marks: Marks) -> list[Requirement]:
    """Return the requirements with covered and pending set from the marks; divergences are unchanged."""
    tests = tests_by_id(marks)
    return [
        requirement
        if requirement.state is State.DIVERGENCE
        else replace(requirement, state=State.COVERED if requirement.id in tests else State.PENDING)
        for requirement in requirements
    ]


def table(requirements: Iterable[Requirement], marks: Marks) -> str:
    """Return a line for each requirement, with its reason and the tests that carry it below."""
    tests = tests_by_id(marks)
    lines = [f"{'id':<8} {'part':<4} {'level':<6} {'wire':<4} {'state':<10} requirement"]
    for requirement in requirements:
        wire = "wire" if requirement.wire else ""
        lines.append(
            f"{requirement.id:<8} {requirement.part:<4} {requirement.level:<6} {wire:<4} {requirement.state:<10} "
            f"{requirement.text}"
        )
        if requirement.reason is not None:
            lines.append(f"{'':<36} departs: {requirement.reason}")
        lines += [f"{'':<36} {test}" for test in tests.get(requirement.id, [])]
    return "\n".join(lines)


def totals(requirements: Sequence[Requirement]) -> str:
    """Return the number of requirements of each document and part in each state, as text."""
    counts = Counter((requirement.document, requirement.part, requirement.state) for requirement in requirements)
    groups = list(dict.fromkeys((requirement.document, requirement.part) for requirement in requirements))
    lines = ["document part  " + "".join(f"{state:>12}" for state in State) + f"{'of':>8}"]
    for document, part in sorted(groups):
        row = [counts[document, part, state] for state in State]
        lines.append(f"{document:<8} {part:<5} " + "".join(f"{count:>12}" for count in row) + f"{sum(row):>8}")
    whole = Counter(requirement.state for requirement in requirements)
    lines.append(f"{'all':<15}" + "".join(f"{whole[state]:>12}" for state in State) + f"{whole.total():>8}")
    return "\n".join(lines)


def pending(requirements: Iterable[Requirement]) -> str:
    """Return the ids that no test carries yet, by document and part; facts are in brackets."""
    groups: dict[tuple[str, int], list[str]] = {}
    for requirement in requirements:
        if requirement.state is State.PENDING:
            number = requirement.id.partition("-")[2]
            groups.setdefault((requirement.document, requirement.part), []).append(
                f"({number})" if requirement.level == "fact" else number
            )
    return "\n".join(
        f"pending {document}, part {part}: {' '.join(numbers)}" for (document, part), numbers in sorted(groups.items())
    )


def update(root: Path, requirements: list[Requirement], marks: Marks) -> list[Requirement]:
    """Write the ledger with the states from the marks, if that changes it, and print each change."""
    after = updated(requirements, marks)
    for old, new in zip(requirements, after, strict=True):
        if old.state is not new.state:
            print(f"{new.id}: {old.state} -> {new.state}")
    text = render(after)
    path = ledger_file(root)
    if text != path.read_text(encoding="utf-8"):
        temporary = path.with_suffix(".toml.new")
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    return after


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Run `make ledger`; return 1 if the ledger and the tests differ, otherwise 0."""
    parser = argparse.ArgumentParser(description="Print the requirement ledger and its pending requirements.")
    parser.add_argument("--update", action="store_true", help="set covered and pending from the marks of the tests")
    parser.add_argument("--state", choices=[str(state) for state in State], help="only requirements in this state")
    parser.add_argument("--part", type=int, help="only requirements of this part")
    parser.add_argument("--document", help="only requirements of this document: GEM, A2A, CLD, MCP, ZH, TCK")
    options = parser.parse_args(arguments)
    requirements, marks = load(root), read_marks(root)
    if options.update:
        requirements = update(root, requirements, marks)
    else:
        chosen = [
            requirement
            for requirement in requirements
            if (options.state is None or requirement.state == options.state)
            and (options.part is None or requirement.part == options.part)
            and (options.document is None or requirement.document == options.document)
        ]
        print(table(chosen, marks), pending(chosen), sep="\n\n")
    print(f"\n{totals(requirements)}")
    found = problems(requirements, marks)
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    # `make ledger | head` ends quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        sys.exit(main(sys.argv[1:]))
    except LedgerError as error:
        sys.exit(f"error: {error}")
