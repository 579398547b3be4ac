"""Rules on tools from the settings: what is excluded, what alone may run, and what is asked about each time.

Gemini CLI's ``tools.exclude``, ``tools.core`` and ``tools.confirmationRequired``. Every file counts, and each can only
forbid more. Pure. Deliberately not here: which tools an entry means, and what a command runs (:mod:`isthmus.agent`).
"""

from dataclasses import dataclass

from isthmus.settings import values
from isthmus.settings.sources import Sources


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """An entry such as ``run_shell_command(git status)``: a tool's name, and the words that a command begins with."""

    text: str
    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolList:
    """The entries of one file, and what they are called there; ``where`` is the file, as texts call it."""

    key: str
    where: str
    entries: tuple[ToolEntry, ...]


@dataclass(frozen=True, slots=True)
class ToolRules:
    """``excluded`` tools do not run; ``core``: each of these lists must name a tool; ``confirmed`` ones are asked."""

    excluded: tuple[ToolList, ...] = ()
    core: tuple[ToolList, ...] = ()
    confirmed: tuple[ToolList, ...] = ()


def tool_rules(files: Sources) -> ToolRules:
    """Return the rules that settings files state.

    Raises:
        SettingsError: a value is not a list of strings.
    """

    def read(key: str) -> tuple[ToolList, ...]:
        found = values.lists(files.of(key), key)
        return tuple(ToolList(key, files.where(source), tuple(map(parse_entry, entries))) for source, entries in found)

    return ToolRules(
        tuple(rules for rules in read("tools.exclude") if rules.entries),
        read("tools.core"),
        tuple(rules for rules in read("tools.confirmationRequired") if rules.entries),
    )


def parse_entry(text: str) -> ToolEntry:
    """Return what an entry of a list says: ``name``, or ``name(words)``."""
    name, bracket, rest = text.strip().partition("(")
    return ToolEntry(text, name.strip(), tuple(rest.removesuffix(")").split()) if bracket else ())
