"""The tree of slash commands: resolving a typed line or a path, near matches, and completion. Pure.

Used by front ends, where a user types a line, and by the engine, which receives a path. Not here: the commands, see
`isthmus.agent.commands`.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, Protocol, Self, TypeVar

from isthmus.development_tool import SlashCommand, SlashCommandArgument
from isthmus.record import record

SUBCOMMAND = "subcommand"
"""Name of the required argument of a command that only groups others."""

ALIASES: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("?",): ("help",),
    ("compact",): ("compress",),
    ("summarize",): ("compress",),
    ("usage",): ("stats",),
    ("undo",): ("restore",),
    ("chat", "ls"): ("chat", "list"),
    ("chat", "load"): ("chat", "resume"),
    ("mcp", "ls"): ("mcp", "list"),
    ("mcp", "reload"): ("mcp", "refresh"),
    ("mcp", "login"): ("mcp", "auth"),
    ("memory", "ls"): ("memory", "list"),
    ("memory", "reload"): ("memory", "refresh"),
}
"""Other names of commands; a command of the tree with the same name takes precedence."""

FRONT_COMMANDS = frozenset(
    {"clear", "copy", "editor", "exit", "help", "mode", "quit", "resume", "sessions", "settings", "theme"}
)
"""Commands of the terminal itself, whose names prompts of MCP servers do not get."""


class Node(Protocol):
    """A command in any tree of commands."""

    @property
    def name(self) -> str:
        """The name, without the names of its parents."""
        ...

    @property
    def sub_commands(self) -> Sequence[Self]:
        """The subcommands."""
        ...


AnyNode = TypeVar("AnyNode", bound=Node)


@record
class CommandLine:
    """A command and its arguments, as typed. ``command`` is None if the tree has no command with this path."""

    path: tuple[str, ...]
    args: str = ""
    command: SlashCommand | None = None


@record
class Completion:
    """A possible completion of a line: the whole line, and the description of its command or value.

    ``is_value`` is whether the line is a command with the whole value of its only argument, so that it can be run.
    """

    line: str
    description: str
    is_value: bool = False


@record
class TypedCommand(Generic[AnyNode]):
    """A command in a line that is being typed. ``args`` follow ``beginning``, which ends with a blank."""

    beginning: str
    args: str
    command: AnyNode


def all_commands(
    tree: Sequence[SlashCommand], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], SlashCommand]]:
    """Yield every command with its path, parents before subcommands."""
    for command in tree:
        path = (*above, command.name)
        yield path, command
        yield from all_commands(command.sub_commands, path)


def find(path: Sequence[str], tree: Sequence[AnyNode]) -> AnyNode | None:
    """Return the command at the end of a path of names."""
    found: AnyNode | None = None
    for name in path:
        found = next((item for item in tree if item.name == name), None)
        if found is None:
            return None
        tree = found.sub_commands
    return found


def resolve(path: Sequence[str], tree: Sequence[AnyNode]) -> tuple[str, ...] | None:
    """Return the path of a command in the tree; None if there is no such command.

    Also accepts ``("git:commit",)``, ``("/memory", "add")``, ``("memory add",)`` and aliases.
    """
    named = tuple(path)
    if named and named[0].startswith("/"):
        named = (named[0][1:], *named[1:])
    words = tuple(word for name in named for word in name.split())
    parts = tuple(part for word in words for part in word.split(":") if part)
    for form in (named, words, parts):
        for candidate in (form, ALIASES.get(form)):
            if candidate and find(candidate, tree) is not None:
                return candidate
    return None


def command_line(path: Sequence[str], args: str, tree: Sequence[SlashCommand]) -> CommandLine:
    """Return the deepest command of a path and arguments: ``("memory",), "add x"`` is ``/memory add`` with ``x``."""
    resolved = resolve(path, tree)
    if resolved is None:
        return CommandLine(tuple(path), args)
    found = find(resolved, tree)
    while found is not None and found.sub_commands and args.strip():
        word, rest = _first_word(args)
        deeper = resolve((*resolved, word), tree)
        if deeper is not None:
            resolved, found, args = deeper, find(deeper, tree), rest
        elif _takes_text(found):
            break
        else:
            resolved, found, args = (*resolved, word), None, rest
    return CommandLine(resolved, args.strip(), found)


def read_line(line: str, tree: Sequence[SlashCommand]) -> CommandLine | None:
    """Return a typed line as a command; None if it does not begin with ``/`` and an existing name or group.

    ``/git:nope`` is a command that does not exist if there is a group ``git``.
    """
    text = line.strip()
    if not text.startswith("/"):
        return None
    if text[1:2].isspace():
        return None
    name, args = _first_word(text[1:])
    if not name or "/" in name:
        return None
    if resolve((name,), tree) is not None:
        return command_line((name,), args, tree)
    group, _, missing = name.partition(":")
    above = resolve((group,), tree) if missing else None
    found = find(above, tree) if above is not None else None
    if above is None or found is None or not found.sub_commands:
        return None
    return CommandLine((*above, *(part for part in missing.split(":") if part)), args.strip())


def typed_command(line: str, tree: Sequence[AnyNode]) -> TypedCommand[AnyNode] | None:
    """Return the deepest command whose name in a line is followed by a blank; None if there is none."""
    path: tuple[str, ...] = ()
    start = 1
    typed: TypedCommand[AnyNode] | None = None
    while line.startswith("/") and (blank := line.find(" ", start)) >= 0:
        resolved = resolve((*path, line[start:blank]), tree)
        found = find(resolved, tree) if resolved is not None else None
        if resolved is None or found is None:
            break
        path, start = resolved, len(line) - len(line[blank:].lstrip(" "))
        typed = TypedCommand(line[:start], line[start:], found)
    return typed


def near(path: Sequence[str], tree: Sequence[SlashCommand], count: int = 3) -> tuple[str, ...]:
    """Return commands with a similar name, ignoring case, nearest first, as typed."""
    path = " ".join(path).removeprefix("/").replace(":", " ").split()
    wanted = " ".join(path)
    known = [" ".join(names) for names, _ in all_commands(tree)]
    folded = {name.casefold(): name for name in reversed(known)}
    alike = difflib.get_close_matches(wanted.casefold(), folded, n=count, cutoff=0.5)
    found = [folded[name] for name in alike]
    if not found and wanted:
        above = resolve(path[:1], tree)
        beginning = " ".join(above) + " " if above is not None else path[0]
        found = [name for name in known if name.startswith(beginning)][:count]
    return tuple(f"/{name}" for name in found)


def completions(line: str, tree: Sequence[SlashCommand]) -> tuple[Completion, ...]:
    """Return the completions of a line that begins with ``/``, in the tree's order."""
    if not line.startswith("/"):
        return ()
    *done, last = line[1:].replace(":", " ").split(" ")
    above = tuple(word for word in done if word)
    if above:
        found = find(above, tree)
        tree = found.sub_commands if found is not None else ()
    beginning = "/" + "".join(f"{word} " for word in above)
    return tuple(Completion(beginning + item.name, item.description) for item in tree if item.name.startswith(last))


def missing_argument(command: SlashCommand, args: str) -> SlashCommandArgument | None:
    """Return the first required argument if no arguments were given."""
    required = (argument for argument in command.arguments if argument.is_required)
    return None if args.strip() else next(required, None)


def usage_of(command: SlashCommand) -> str:
    """Return the arguments as shown after a command's name, such as `` FACT [PLACE]``; empty for none."""
    shown = [item for item in command.arguments if item.name != SUBCOMMAND]
    return "".join(f" {item.name.upper()}" if item.is_required else f" [{item.name.upper()}]" for item in shown)


def _first_word(text: str) -> tuple[str, str]:
    """Return the first word, and the unchanged rest."""
    words = text.split(maxsplit=1)
    return (words[0], words[1] if len(words) > 1 else "") if words else ("", "")


def _takes_text(command: SlashCommand) -> bool:
    return any(argument.name != SUBCOMMAND for argument in command.arguments)
