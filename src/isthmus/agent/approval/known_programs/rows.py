"""The rows of known programs, and how they are read.

A row says which options a lasting permission covers; every other option is asked about each time. A program or
sub-command without a row has no lasting permission but for one exact command. Its parts, separated by spaces:

===============  =======================================================================================
``*``            every option
``+ab:c#``       letters of options, also bundled, as for getopt: a value follows ``b``; ``#`` is a number
``--name``       a long option, also with a value after ``=``, and ``--no-name``
``-name``        an option of several letters with one hyphen, also with a value after ``=``
``--name=text``  a whole word; ``*`` at its end stands for any rest
``word``         a possible first operand: if there are some, others are asked about
``any``          first operands without an entry are known, too: they are named by the project
``args``         the options end with the first operand, whose arguments all others are
``through``      the options do not end with ``--``
``expand``       words are not asked about because bash may expand them to options
``writes``       files are changed by purpose: those that the arguments name, or a project's own
``<2``           at most two operands: a further one is a file that is written
``=``            an operand ``NAME=value`` is asked about, unless it is known to be plain
``:``            a word with a colon is asked about: it may name another machine
``@``            a word that begins with ``@`` is asked about: it names a file with further options
``each``         every call is asked about
===============  =======================================================================================

Not here: how the words of a command are found, see `isthmus.agent.approval.shell_command`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise

from isthmus.agent.approval.known_programs import building, git, packages, system, tools
from isthmus.record import record

ROWS: Mapping[str, str] = {**system.ROWS, **git.ROWS, **building.ROWS, **packages.ROWS, **tools.ROWS}
"""All rows, by a program's name or by its name and sub-command."""
_PROGRAMS = frozenset(key.partition(" ")[0] for key in ROWS)
_TRAITS = frozenset({"any", "args", "through", "expand", "writes", "each", "*", "=", ":", "@"})


@record
class Row:
    """A row that was read. ``letters`` are those of options; ``valued`` those whose value follows."""

    traits: frozenset[str]
    letters: frozenset[str]
    valued: frozenset[str]
    names: frozenset[str]
    beginnings: tuple[str, ...]
    operands: frozenset[str]
    maximum: int | None

    def covers(self, word: str) -> bool:
        """Return whether an option is covered."""
        if "*" in self.traits:
            return True
        name = word.partition("=")[0]
        if word in self.names or name in self.names or word.startswith(self.beginnings):
            return True
        if word.startswith("--"):
            return name.startswith("--no-") and f"--{name[5:]}" in self.names
        return self._covers_letters(word[1:])

    def _covers_letters(self, letters: str) -> bool:
        has_names = any(not name.startswith("--") for name in self.names)
        for number, letter in enumerate(letters):
            if letter in self.valued:
                return True
            if letter not in self.letters and not (letter.isdigit() and "#" in self.letters):
                return False
            if has_names and number:
                return False  # not a bundle, but a name that is not known
        return True


@record
class KnownProgram:
    """A program with rows; ``row`` is None if its sub-command has none. ``depth`` is the number of words of its key."""

    key: str
    row: Row | None
    depth: int


def known_program(words: Sequence[str]) -> KnownProgram | None:
    """Return what is known of a command by its first words, the program's name without its folder; None if nothing."""
    name = words[0].rpartition("/")[2]
    if name not in _PROGRAMS:
        return None
    for depth in (3, 2, 1):
        key = " ".join((name, *words[1:depth]))
        if len(words) >= depth and key in ROWS:
            return KnownProgram(key, _row(key), depth)
    return KnownProgram(" ".join((name, *words[1:2])), None, min(2, len(words)))


@cache
def _row(key: str) -> Row:
    parts = ROWS[key].split()
    letters = "".join(part[1:] for part in parts if part.startswith("+"))
    options = [part for part in parts if part.startswith("-")]
    counts = [int(part[1:]) for part in parts if part.startswith("<")]
    return Row(
        traits=frozenset(part for part in parts if part in _TRAITS),
        letters=frozenset(letters) - {":"},
        valued=frozenset(letter for letter, after in pairwise(letters) if after == ":" and letter != ":"),
        names=frozenset(option for option in options if not option.endswith("*")),
        beginnings=tuple(option[:-1] for option in options if option.endswith("*")),
        operands=frozenset(part for part in parts if part[0] not in "+-<" and part not in _TRAITS),
        maximum=counts[0] if counts else None,
    )
