"""Permission rules of Claude Code: their syntax, by its documentation (https://code.claude.com/docs/en/permissions).

What the documentation says, and what is done here where it leaves a choice:

- A rule is ``Tool`` or ``Tool(specifier)``. ``deny`` counts before ``ask``, and ``ask`` before ``allow``, whatever file
  a rule is in and however specific it is. A tool that ``deny`` names without a specifier is not offered to the model.
- ``Bash(npm run build)`` is that command alone; ``*`` stands for any text, at any place. ``Bash(ls *)`` needs a blank
  or the end behind ``ls``, ``Bash(ls*)`` does not. ``Bash(ls:*)`` is ``Bash(ls *)``; ``:*`` elsewhere is ordinary text.
  Each part of a compound command is compared. There, wrappers such as ``timeout`` are left out of the comparison; here
  a command with one cannot be analysed for certain: it is refused if it contains the words, and otherwise asked about.
- ``Read`` and ``Edit`` take patterns of ignore files. ``//x`` is below the root, ``~/x`` below the home folder, ``/x``
  below the folder of the settings (of a project: its own), ``x`` and ``./x`` below the current folder. Where they
  forbid or ask, a relative one counts in any folder below it. ``Edit`` means all tools that change files, ``Read`` all
  that show them; here also those that change them.
- ``Write(x)``, ``NotebookEdit(x)``, ``MultiEdit(x)``, ``Glob(x)`` and ``Grep(x)`` have no effect there; here they are
  ``Edit(x)`` and ``Read(x)`` where they forbid or ask.
- Of a symbolic link, ``deny`` and ``ask`` are compared with its path and with that of the file that it leads to, and
  one of them is enough; ``allow`` needs both. They also count for commands that are known to read files (``cat``).
- ``WebFetch(domain:example.com)`` is that host, ``*`` stands for any text.
- ``mcp__server`` and ``mcp__server__*`` are all tools of a server, ``mcp__server__tool`` is one. Such a rule with
  a specifier has no effect there, and is not understood here.
- ``deny`` and ``ask`` may have ``*`` in the name of the tool, ``allow`` only behind ``mcp__server__``.
- ``Agent(name)``, earlier ``Task(name)``, is a subagent, ``Skill(name)`` a skill.
- ``Tool(parameter:value)`` compares a parameter. That is not understood here, because our tools have others.

Pure, but for the links in the beginning of a path.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from isthmus.errors import IsthmusError
from isthmus.files.path_rules import PathPatternError, PathRule, check_line
from isthmus.record import record
from isthmus.settings.rules.claude_names import CLAUDE_NAMES, OTHER_TOOLS
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.text.wildcards import matches_wildcard

MAXIMUM_CHARACTERS = 1000
"""Maximum length of a rule."""
_RULE = re.compile(r"([A-Za-z0-9_.*-]+)(?:\((.*)\))?", re.DOTALL)
_PARAMETER = re.compile(r"([A-Za-z_]\w*)\s*:.+", re.DOTALL)
_BASH_PARAMETERS = frozenset({"command", "dangerouslyDisableSandbox", "description", "run_in_background", "timeout"})
_AGENT_PARAMETERS = frozenset({"description", "isolation", "model", "prompt", "run_in_background", "subagent_type"})
_ANCHORED_TOOL = re.compile(r"mcp__[^*]+?__[^*]*\*?|mcp__[^*]+")
_READING = frozenset({"Glob", "Grep", "LS", "NotebookRead", "Read"})
_EDITING = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
_KNOWN = {name for tool, names in CLAUDE_NAMES.items() for name in (tool, *names)} | OTHER_TOOLS | _READING | _EDITING
_WILDCARDS = re.compile(r"[*?\[\\]")


class PermissionRuleError(IsthmusError):
    """A rule is not understood; the text says why."""


@record
class CommandPattern:
    """Condition on a shell command, or on one of its parts."""

    pattern: str

    def matches(self, command: str) -> bool:
        """Return whether a command fits; a last word ``*`` may be missing if it is the only ``*``."""
        if matches_wildcard(self.pattern, command):
            return True
        return self.pattern.endswith(" *") and self.pattern.count("*") == 1 and command == self.pattern[:-2]

    @property
    def beginning(self) -> str:
        """The words before the first ``*``."""
        return self.pattern.partition("*")[0].strip()


@record
class DomainPattern:
    """Condition on the host of a URL, in small letters."""

    pattern: str


@record
class NamePattern:
    """Condition on the name of a subagent or a skill."""

    pattern: str


Condition: TypeAlias = CommandPattern | PathRule | DomainPattern | NamePattern | None
"""Condition on a call; None for all calls of the tool."""


@record
class PermissionRule:
    """A rule: ``tool`` is Claude Code's name of the tool, perhaps with ``*``; ``where`` names the rule in messages."""

    decision: RuleDecision
    tool: str
    where: str
    condition: Condition = None


@record
class PathFolders:
    """Folders of the paths in rules: the current one, the user's home, and those for paths that begin with a slash."""

    current: Path
    home: Path
    settings: tuple[Path, ...]


def parse_rule(text: str, decision: RuleDecision, where: str, folders: PathFolders) -> PermissionRule:
    """Parse a rule of a file; ``where`` is the name of the list with its file.

    Raises:
        PermissionRuleError: it is not understood.
    """
    if len(text) > MAXIMUM_CHARACTERS:
        raise PermissionRuleError(f"it is longer than {MAXIMUM_CHARACTERS} characters")
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise PermissionRuleError("expected Tool or Tool(specifier)")
    tool, specifier = found[1], None if found[2] is None else found[2].strip()
    name = f"{text.strip()!r} in {where}"
    is_allowing = decision is RuleDecision.ALLOW
    _check_tool(tool, specifier, is_allowing=is_allowing)
    if specifier is None or (tool in ("Bash", "run_shell_command") and specifier in ("", "*")):
        return PermissionRule(decision, tool, name)
    if not specifier:
        raise PermissionRuleError("its specifier is empty")
    if tool in _READING | _EDITING:
        if is_allowing and tool not in ("Edit", "Read"):
            raise PermissionRuleError("a path is allowed with Edit(...) alone")
        kind = "Read" if tool in _READING else "Edit"
        return PermissionRule(decision, kind, name, _path_rule(specifier, name, folders, is_allowing=is_allowing))
    return PermissionRule(decision, tool, name, _condition(tool, specifier))


def _check_tool(tool: str, specifier: str | None, *, is_allowing: bool) -> None:
    if tool.startswith("mcp__"):
        if specifier is not None:
            raise PermissionRuleError("a rule on MCP tools has no specifier")
        if is_allowing and _ANCHORED_TOOL.fullmatch(tool) is None:
            raise PermissionRuleError("only mcp__SERVER__ may come before * where it allows")
    elif "*" in tool:
        if is_allowing or specifier is not None:
            raise PermissionRuleError("* in the name of a tool can only forbid or ask, without a specifier")
    elif tool not in _KNOWN:
        raise PermissionRuleError(f"there is no tool {tool!r}")


def _condition(tool: str, specifier: str) -> CommandPattern | DomainPattern | NamePattern:
    parameter = _PARAMETER.fullmatch(specifier)
    match tool:
        case "Bash" | "run_shell_command":
            if parameter is not None and parameter[1] in _BASH_PARAMETERS and not specifier.endswith(":*"):
                raise PermissionRuleError("rules on parameters are not supported")
            return CommandPattern(f"{specifier[:-2]} *" if specifier.endswith(":*") else specifier)
        case "WebFetch" | "web_fetch":
            key, _, domain = specifier.partition(":")
            if key.strip() != "domain" or not domain.strip():
                raise PermissionRuleError("expected WebFetch(domain:HOST)")
            return DomainPattern(domain.strip().lower().rstrip("."))
        case "Agent" | "Task" | "invoke_agent":
            if parameter is not None and parameter[1] in _AGENT_PARAMETERS:
                raise PermissionRuleError("rules on parameters are not supported")
            return NamePattern(specifier)
        case "Skill" | "activate_skill":
            return NamePattern(specifier.removesuffix(":*").removesuffix(" *"))
        case _:
            raise PermissionRuleError(f"a rule on {tool} has no specifier")


def _path_rule(text: str, where: str, folders: PathFolders, *, is_allowing: bool) -> PathRule:
    if text.startswith("!"):
        raise PermissionRuleError("a pattern of paths must not begin with !")
    places: list[tuple[Path, str]] = []
    if text.startswith("//"):
        places.append((Path("/"), text.lstrip("/")))
    elif text == "~" or text.startswith("~/"):
        places.append((folders.home, text[2:]))
    elif text.startswith("/"):
        places += [(folder, text.lstrip("/")) for folder in folders.settings]
    else:
        return _rule(where, _relative_places(text, folders.current, is_allowing=is_allowing))
    return _rule(where, [(folder, f"/{line}") for place in places for folder, line in _with_links(*place)])


def _relative_places(text: str, current: Path, *, is_allowing: bool) -> Sequence[tuple[Path, str]]:
    line, folder = text, current
    while line.startswith(("./", "../")):
        folder = folder.parent if line.startswith("../") else folder
        line = line.partition("/")[2].lstrip("/")
    is_name = "/" not in line.rstrip("/")
    anywhere = (folder, f"**/{line.removeprefix('**/')}")
    if is_name:
        return [anywhere]
    places = [(path, f"/{rest}") for path, rest in _with_links(folder, line)]
    return places if is_allowing or folder != current else [*places, anywhere]


def _rule(where: str, places: Sequence[tuple[Path, str]]) -> PathRule:
    for _, line in places:
        if not line.strip("/") or ".." in line.split("/"):
            raise PermissionRuleError("it is not a pattern of paths")
        try:
            check_line(line)
        except PathPatternError as error:
            raise PermissionRuleError(str(error)) from error
    spelled = ((folder, line) for path, line in places for folder in (str(path), os.path.realpath(path)))
    return PathRule(where, tuple(dict.fromkeys(spelled)))


def _with_links(folder: Path, line: str) -> Iterator[tuple[Path, str]]:
    """Yield a place, and the same one with the folders or file before its first wildcard without symbolic links."""
    yield folder, line
    names = line.split("/")
    count = next((index for index, name in enumerate(names) if _WILDCARDS.search(name)), len(names))
    if not count or "\0" in line:
        return
    literal = folder.joinpath(*names[:count])
    real = Path(os.path.realpath(literal))
    if real != literal and real != Path(os.path.realpath(folder), *names[:count]):
        rest = names[count:]
        if rest:
            yield real, "/".join(rest)
        elif real.name:
            yield real.parent, re.sub(r"([*?\[\\])", r"\\\1", real.name)
