"""Tools restricted by the settings: excluded tools, the only allowed tools, and tools that need an answer each time.

The model does not receive forbidden tools. If only some shell commands are forbidden, the shell refuses those,
regardless of mode and earlier answers, and also commands that may be forbidden ones in disguise.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from typing_extensions import override

from isthmus.agent.approval.grants import SHELL_NAMES
from isthmus.agent.approval.permission_rules import withheld
from isthmus.agent.approval.policy_rules import NamedTool, exclusion
from isthmus.agent.approval.shell_command import analyse
from isthmus.development_tool import ConfirmationDetails
from isthmus.encoding.codec import JsonObject
from isthmus.record import record
from isthmus.settings.rules.permissions import PermissionRule
from isthmus.settings.rules.rules import FolderRules, PolicyRule, ToolList, ToolRules
from isthmus.settings.settings_file import SettingsError
from isthmus.tools.port.base import Arguments, CallContext, Tool, ToolContext, ToolKind, ToolResult, TranslatedTool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope, ToolSet, ToolSource
from isthmus.tools.port.trying import TryingTool

_OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    "glob": ("GlobTool",),
    "grep_search": ("GrepTool", "RipGrepTool", "search_file_content"),
    "list_directory": ("LSTool",),
    "list_mcp_resources": ("ListMcpResourcesTool",),
    "read_file": ("ReadFileTool",),
    "read_many_files": ("ReadManyFilesTool",),
    "read_mcp_resource": ("ReadMcpResourceTool",),
    "replace": ("EditTool",),
    "run_shell_command": SHELL_NAMES,
    "write_file": ("WriteFileTool",),
}
"""Other names that Gemini CLI accepts for its tools: their class names, and names of earlier versions."""
_EFFECTS_OF: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("apply_patch", "notebook_edit"),
    ("replace", "write_file", *_OTHER_NAMES["replace"], *_OTHER_NAMES["write_file"]),
)
"""Names of tools whose effect another tool has too, so that a list which forbids or confirms them means it as well."""
PERMISSION_DENIED = "permission_denied"
UNREADABLE_SETTINGS = "settings"
"""Category of the failure if the rules of a folder cannot be read."""
MAXIMUM_KEPT = 256
"""Maximum number of folders whose last good rules are kept."""


@runtime_checkable
class OfServer(Protocol):
    """A tool of an MCP server."""

    @property
    def server_tool_name(self) -> str:
        """The tool's own name on its server."""
        ...


RulesOfFolder: TypeAlias = Callable[[Path], Awaitable[FolderRules]]
"""Reads the rules for a folder; raises SettingsError."""


class RestrictedTools(ToolSource):
    """A source of tools that applies the rules of their folder."""

    def __init__(self, source: ToolSource, rules_of: RulesOfFolder) -> None:
        self._source = source
        self._rules_of = rules_of
        self._given: dict[tuple[str, str], tuple[ToolSet, ToolSet]] = {}
        self._last: dict[Path, FolderRules] = {}
        """The last rules of a folder that could be read, for work that goes on."""

    @override
    async def tools(self, scope: ToolScope) -> ToolSet:
        return await self._restrict(scope, await self._source.tools(scope), goes_on=scope.goes_on)

    @override
    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        whole, shown = self._given.get(_key(scope), (tools, tools))
        if shown is not tools:
            return await self._restrict(scope, await self._source.tools(scope), goes_on=True)
        now = await self._source.renewed(scope, whole)
        return tools if now is whole else await self._restrict(scope, now, goes_on=True)

    @override
    async def release(self, scope: ToolScope) -> None:
        self._given.pop(_key(scope), None)
        await self._source.release(scope)

    async def _rules(self, folder: Path, *, goes_on: bool) -> FolderRules:
        """Return the rules of a folder; for work that ``goes_on`` the last good ones if they cannot be read now.

        Raises:
            ToolFailure: they cannot be read, and without them the forbidden tools are unknown.
        """
        try:
            rules = await self._rules_of(folder)
        except SettingsError as error:
            if goes_on and (last := self._last.get(folder)) is not None:
                return last
            raise ToolFailure(str(error), UNREADABLE_SETTINGS) from error
        if folder not in self._last and len(self._last) >= MAXIMUM_KEPT:
            del self._last[next(iter(self._last))]
        self._last[folder] = rules
        return rules

    async def _restrict(self, scope: ToolScope, whole: ToolSet, *, goes_on: bool) -> ToolSet:
        rules = await self._rules(scope.workspace, goes_on=goes_on)
        shown = restrict(whole, rules.tools, rules.policies, rules.permissions)
        if (rules.yolo_refusal, rules.keeps_answers, rules.hooks) != (None, True, ()):
            shown = replace(
                shown, yolo_refusal=rules.yolo_refusal, keeps_answers=rules.keeps_answers, hooks=rules.hooks
            )
        self._given[_key(scope)] = (whole, shown)
        return shown


def restrict(
    tools: ToolSet,
    rules: ToolRules,
    policies: tuple[PolicyRule, ...] = (),
    permissions: tuple[PermissionRule, ...] = (),
) -> ToolSet:
    """Return the tools that the rules allow; ``policies`` and ``permissions`` decide on single calls, and go along."""
    if rules == ToolRules() and not policies and not permissions:
        return tools
    servers = {name: server.name for server in tools.servers for name in server.tools}
    kept: dict[str, Tool] = {}
    refusals: dict[str, str] = {}
    asked: dict[str, str] = {}
    for name, tool in tools.tools.items():
        spellings = _spellings(tool, servers.get(name))
        named = named_tool(tool, servers.get(name))
        reason = _refusal(spellings, rules) or exclusion(policies, named) or withheld(permissions, named)
        if reason is not None:
            refusals[name] = reason
            continue
        commands = CommandRules.of(rules) if name == SHELL_NAMES[0] else CommandRules()
        kept[name] = tool if commands == CommandRules() else RestrictedShell(tool, commands)
        for rule in rules.confirmed:
            if any(entry.name in spellings.all or entry.name in _EFFECTS_OF.get(name, ()) for entry in rule.entries):
                asked[name] = f"{rule.key} in {rule.where} requires a user's answer each time"
    left = tuple(replace(one, tools=tuple(name for name in one.tools if name in kept)) for one in tools.servers)
    return replace(
        tools,
        tools=kept,
        servers=left,
        refusals=refusals,
        always_asked={**tools.always_asked, **asked},
        policies=policies or tools.policies,
        permissions=permissions or tools.permissions,
    )


def named_tool(tool: Tool, server: str | None) -> NamedTool:
    """Return a tool with the names that policy files know it by; ``server`` is its MCP server."""
    spellings = _spellings(tool, server)
    own = tool.server_tool_name if isinstance(tool, OfServer) else tool.name
    names = {tool.name} if server is not None else spellings.all - {"*"}
    return NamedTool(frozenset(names), own, server, spellings.loose)


@record
class CommandRules:
    """Prefixes of shell commands: ``excluded`` ones do not run; one of each list in ``core`` must match."""

    excluded: tuple[tuple[tuple[str, ...], str], ...] = ()
    core: tuple[tuple[tuple[tuple[str, ...], ...], str], ...] = ()

    @classmethod
    def of(cls, rules: ToolRules) -> "CommandRules":
        """Return the rules for commands; a list that names the whole shell limits none."""
        excluded = tuple(
            (entry.words, f"{entry.text!r} in {rule.key} of {rule.where}")
            for rule in rules.excluded
            for entry in rule.entries
            if entry.words and entry.name in SHELL_NAMES
        )
        core = tuple(
            (tuple(words), f"{rule.key} of {rule.where}")
            for rule in rules.core
            if (words := _words_of_shell(rule)) is not None
        )
        return cls(excluded, core)

    def refusal(self, command: str) -> str | None:
        """Return why a command must not run; None if the rules allow it."""
        analysis = analyse(command)
        if analysis is None or not analysis.commands:
            where = next((where for _, where in (*self.excluded, *self.core)), "")
            return (
                f"what this command would run cannot be determined, and {where} forbids some commands; write it"
                " as plain commands, without variables, substitutions and programs that run others"
            )
        for simple in analysis.commands:
            spelled = (simple.words, (Path(simple.words[0]).name, *simple.words[1:]))
            for words, where in self.excluded:
                if any(_begins(one, words) for one in spelled):
                    return f"{' '.join(simple.words)[:200]!r} is forbidden by {where}"
            for allowed, where in self.core:
                if not any(_begins(simple.words, words) for words in allowed):
                    return f"{' '.join(simple.words)[:200]!r} is not among the commands that {where} allows"
        return None


class RestrictedShell:
    """The shell without the commands that the settings forbid."""

    def __init__(self, tool: Tool, rules: CommandRules) -> None:
        self._tool = tool
        self._rules = rules
        self.name = tool.name
        self.description = tool.description
        self.parameters: Mapping[str, Any] = tool.parameters
        self.kind: ToolKind = tool.kind

    def describe(self, arguments: Arguments) -> str:
        """Return the description of a call, for people."""
        return self._tool.describe(arguments)

    def meant(self, arguments: Arguments) -> tuple[str, JsonObject] | None:
        """Return the call of another tool that a command means, which has rules of its own."""
        return self._tool.meant(arguments) if isinstance(self._tool, TranslatedTool) else None

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Propose the command, unless it is forbidden."""
        proposal = await self._tool.propose(arguments, context)
        self._check(arguments)
        return proposal

    async def try_out(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Try the command, unless the rules forbid it."""
        self._check(arguments)
        return await self._tool.try_out(arguments, context) if isinstance(self._tool, TryingTool) else None

    async def discard(self, details: ConfirmationDetails, context: ToolContext) -> None:
        """Throw away what is kept of a trial."""
        if isinstance(self._tool, TryingTool):
            await self._tool.discard(details, context)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Run the command, unless the rules forbid it by now."""
        self._check(arguments)
        return await self._tool.run(arguments, context)

    def _check(self, arguments: Arguments) -> None:
        command = arguments.get("command")
        reason = self._rules.refusal(command) if isinstance(command, str) else None
        if reason is not None:
            raise ToolFailure(f"{reason}; nothing was run", PERMISSION_DENIED)


@record
class _Spellings:
    """Names that mean a tool in a list. ``loose`` names may also mean tools of other servers, so they only forbid."""

    all: frozenset[str]
    loose: frozenset[str] = frozenset()


def _spellings(tool: Tool, server: str | None) -> _Spellings:
    if server is None:
        names = frozenset({"*", tool.name, *_OTHER_NAMES.get(tool.name, ())})
        return _Spellings(names, frozenset(_EFFECTS_OF.get(tool.name, ())))
    own = tool.server_tool_name if isinstance(tool, OfServer) else tool.name.removeprefix(f"{server}__")
    forms = {f"{server}.{own}", f"{server}__{own}", f"mcp_{server}_{own}", f"mcp_{server}_*", "mcp_*", server}
    return _Spellings(frozenset({"*", tool.name, *forms}), frozenset({own}))


def _refusal(spellings: _Spellings, rules: ToolRules) -> str | None:
    """Return why a tool is withheld from the model; None if it is offered."""
    for rule in rules.excluded:
        for entry in rule.entries:
            # An entry for some commands leaves the shell itself in place; other tools have no parts.
            is_part = bool(entry.words) and entry.name in SHELL_NAMES
            if not is_part and entry.name in spellings.all | spellings.loose:
                return f"{entry.text!r} in {rule.key} of {rule.where} excludes it"
    for rule in rules.core:
        if not any(entry.name in spellings.all for entry in rule.entries):
            return f"{rule.key} of {rule.where} does not name it"
    return None


def _words_of_shell(rule: ToolList) -> Iterable[tuple[str, ...]] | None:
    """Return the prefixes of commands that a list allows; None if it names the shell as a whole."""
    entries = [entry for entry in rule.entries if entry.name in (*SHELL_NAMES, "*")]
    return None if any(not entry.words for entry in entries) else [entry.words for entry in entries]


def _begins(words: tuple[str, ...], beginning: tuple[str, ...]) -> bool:
    return words[: len(beginning)] == beginning


def _key(scope: ToolScope) -> tuple[str, str]:
    return scope.context_id, scope.task_id
