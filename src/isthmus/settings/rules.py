"""Rules of the settings on tools, approvals and answers. Pure; ``loading`` reads them from the files.

Every settings file counts for the rules of a folder, and each can only forbid more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """An entry such as ``run_shell_command(git status)``: a tool's name, and the words that a command begins with.

    :mod:`isthmus.agent` decides which tools it means.
    """

    text: str
    name: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolList:
    """The entries of one file, and their key there; ``where`` is the name of the file in messages."""

    key: str
    where: str
    entries: tuple[ToolEntry, ...]


@dataclass(frozen=True, slots=True)
class ToolRules:
    """Gemini CLI's ``tools.exclude``, ``tools.core`` and ``tools.confirmationRequired``.

    Tools in ``excluded`` do not run, only tools in every list of ``core`` do, and those in ``confirmed`` always need an
    answer.
    """

    excluded: tuple[ToolList, ...] = ()
    core: tuple[ToolList, ...] = ()
    confirmed: tuple[ToolList, ...] = ()


@dataclass(frozen=True, slots=True)
class FolderRules:
    """Rules of a folder on tools, on the approval mode ``yolo`` and on answers that hold for more than one call.

    ``yolo_refusal`` is the reason why ``yolo`` is refused, or None.
    """

    tools: ToolRules = field(default_factory=ToolRules)
    yolo_refusal: str | None = None
    keeps_answers: bool = True

    def __or__(self, other: "FolderRules") -> "FolderRules":
        """Return the rules that forbid what either forbids."""
        return FolderRules(
            ToolRules(
                _both(self.tools.excluded, other.tools.excluded),
                _both(self.tools.core, other.tools.core),
                _both(self.tools.confirmed, other.tools.confirmed),
            ),
            self.yolo_refusal or other.yolo_refusal,
            self.keeps_answers and other.keeps_answers,
        )

    def described(self) -> tuple[str, ...]:
        """Return the rules that forbid something or require a question, each with the file that states it."""
        lists = (*self.tools.excluded, *self.tools.core, *self.tools.confirmed)
        yolo = () if self.yolo_refusal is None else (f"approval mode yolo: {self.yolo_refusal}",)
        kept = () if self.keeps_answers else ("no answer holds for more than one call",)
        return (*(f"{rules.key} of {rules.where}" for rules in lists), *yolo, *kept)


@dataclass(frozen=True, slots=True)
class ReadOnlyTools:
    """MCP servers whose tools that only read run without a question; ``servers`` takes precedence."""

    everywhere: bool = False
    servers: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def are_free(self, server: str) -> bool:
        """Return whether such tools of a server run without a question."""
        return self.servers.get(server, self.everywhere)


def parse_entry(text: str) -> ToolEntry:
    """Parse an entry of a list: ``name``, or ``name(words)``."""
    name, bracket, rest = text.strip().partition("(")
    return ToolEntry(text, name.strip(), tuple(rest.removesuffix(")").split()) if bracket else ())


def _both(first: tuple[ToolList, ...], second: tuple[ToolList, ...]) -> tuple[ToolList, ...]:
    return tuple(dict.fromkeys((*first, *second)))
