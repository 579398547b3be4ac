"""Decisions of Claude Code's permission rules on a tool call.

``deny`` counts before ``ask``, and ``ask`` before ``allow``. A shell command is decided in its parts: one that is
forbidden forbids the whole, and all must be allowed. Symbolic links of paths are followed, which blocks for a moment;
otherwise pure. The tools' workspace holds the rules on paths, too: see :func:`access_of`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never
from urllib.parse import urlsplit

from isthmus.agent.approval.command_paths import command_paths
from isthmus.agent.approval.grants import SHELL_NAMES
from isthmus.agent.approval.policy_rules import NamedTool, Ruling
from isthmus.agent.approval.shell_command import ShellAnalysis, analyse
from isthmus.encoding.json_shapes import as_list
from isthmus.files.path_rules import PathAccess, PathRule, compiled, expand_home, followed
from isthmus.record import record
from isthmus.settings.rules.claude_names import CLAUDE_NAMES, EDITING_TOOLS, READING_TOOLS
from isthmus.settings.rules.permissions import CommandPattern, DomainPattern, NamePattern, PermissionRule
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.text.wildcards import matches_wildcard

_PLAIN_URL = re.compile(r"(?i)https?://[a-z0-9.-]+(?::\d+)?(?:[/?#].*)?", re.DOTALL)
_SHELL = SHELL_NAMES[0]
_FOREIGN_TO_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_GLOB = re.compile(r"[*?\[{]")
_STRICT = (RuleDecision.DENY, RuleDecision.ASK)


@record
class PermittedCall:
    """A call that rules decide on. ``effect`` has its arguments with the usual names and whole paths."""

    tool: NamedTool
    effect: Mapping[str, Any]
    workspace: Path


def permission_on(rules: Sequence[PermissionRule], call: PermittedCall) -> Ruling | None:
    """Return the decision of the rules on a call; None if none applies."""
    about = [rule for rule in rules if _names(rule, call.tool) or _is_about_paths(rule, call.tool)]
    if not about:
        return None
    command = call.effect.get("command")
    if call.tool.server is None and call.tool.own == _SHELL and isinstance(command, str):
        return _on_command(about, call, command)
    paths = paths_of(call.tool, call.effect, call.workspace)
    for decision in _STRICT:
        for rule in about:
            if rule.decision is decision and _forbids(rule, call, paths):
                return _ruling(rule)
    allowing = (rule for rule in about if rule.decision is RuleDecision.ALLOW and _allows(rule, call, paths))
    return next(map(_ruling, allowing), None)


def withheld(rules: Sequence[PermissionRule], tool: NamedTool) -> str | None:
    """Return why a tool is withheld from the model: a rule denies all calls of it. Otherwise None."""
    for rule in rules:
        if rule.decision is RuleDecision.DENY and rule.condition is None and _names(rule, tool):
            return _ruling(rule).reason
    return None


def may_permit(rules: Sequence[PermissionRule], tool: NamedTool) -> bool:
    """Return whether a rule allows some calls of a tool."""
    return any(
        rule.decision is RuleDecision.ALLOW and (_names(rule, tool) or _is_about_paths(rule, tool)) for rule in rules
    )


def access_of(rules: Sequence[PermissionRule]) -> PathAccess:
    """Return the rules on paths for the workspace, so that they also hold in searches and for links made meanwhile."""

    def of(decision: RuleDecision, tool: str) -> tuple[PathRule, ...]:
        found = (rule for rule in rules if rule.decision is decision and rule.tool == tool)
        return tuple(rule.condition for rule in found if isinstance(rule.condition, PathRule))

    return PathAccess(of(RuleDecision.DENY, "Read"), of(RuleDecision.DENY, "Edit"), of(RuleDecision.ASK, "Read"))


def _names(rule: PermissionRule, tool: NamedTool) -> bool:
    """Return whether a rule is about a tool by its name."""
    is_allowing = rule.decision is RuleDecision.ALLOW
    if tool.server is not None:
        return any(
            matches_wildcard(rule.tool, name)
            for server in {tool.server, _FOREIGN_TO_NAMES.sub("_", tool.server)}
            # The name mcp__a__b__c may mean two servers, which must not get the permissions of each other.
            if not (is_allowing and "__" in server)
            for name in (f"mcp__{server}", f"mcp__{server}__{tool.own}")
        )
    names = {tool.own, *CLAUDE_NAMES.get(tool.own, ())}
    names |= {"Read"} if tool.own in READING_TOOLS else set[str]()
    names |= {"Edit"} if tool.own in EDITING_TOOLS else set[str]()
    return any(matches_wildcard(rule.tool, name) for name in names)


def _is_about_paths(rule: PermissionRule, tool: NamedTool) -> bool:
    """Return whether a rule on paths is also about a tool that it does not name."""
    if not isinstance(rule.condition, PathRule) or tool.server is not None or rule.decision is RuleDecision.ALLOW:
        return False
    return tool.own == _SHELL or tool.own in EDITING_TOOLS


def paths_of(tool: NamedTool, effect: Mapping[str, Any], workspace: Path) -> tuple[tuple[str, ...], ...]:
    """Return the whole paths of a call of a tool for files, each with the one that it leads to.

    Without one it is the workspace.
    """
    if tool.server is not None or tool.own not in READING_TOOLS | EDITING_TOOLS:
        return ()
    found = [effect[name] for name in ("file_path", "dir_path") if isinstance(effect.get(name), str)]
    for include in (effect.get("include"), effect.get("paths")):
        names = [name for name in as_list(include) if isinstance(name, str) and not _GLOB.search(name)]
        found += [str(workspace / expand_home(name)) for name in names]
    return tuple(map(followed, found or [str(workspace)]))


def _forbids(rule: PermissionRule, call: PermittedCall, paths: Sequence[Sequence[str]]) -> bool:
    """Return whether the condition of a rule that forbids or asks is fulfilled."""
    match rule.condition:
        case None:
            return True
        case PathRule() as path_rule:
            return any(compiled((path_rule,)).find(path) is not None for spellings in paths for path in spellings)
        case DomainPattern(pattern):
            url = str(call.effect.get("url", ""))
            # Programs do not agree on the host of an unusual URL.
            return not _PLAIN_URL.fullmatch(url) or matches_wildcard(pattern, _host(url))
        case NamePattern(pattern):
            return matches_wildcard(pattern, _name(call))
        case CommandPattern():
            return False
        case _:
            assert_never(rule.condition)


def _allows(rule: PermissionRule, call: PermittedCall, paths: Sequence[Sequence[str]]) -> bool:
    """Return whether the condition of a rule that allows is fulfilled for certain."""
    match rule.condition:
        case None:
            return True
        case PathRule() as path_rule:
            return bool(paths) and all(
                compiled((path_rule,)).find(path) is not None for spellings in paths for path in spellings
            )
        case DomainPattern(pattern):
            url = str(call.effect.get("url", ""))
            return _PLAIN_URL.fullmatch(url) is not None and matches_wildcard(pattern, _host(url))
        case NamePattern(pattern):
            return matches_wildcard(pattern, _name(call))
        case CommandPattern():
            return False
        case _:
            assert_never(rule.condition)


def _host(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower().rstrip(".")
    except ValueError:
        return ""


def _name(call: PermittedCall) -> str:
    """Return the name of the subagent or skill of a call."""
    return str(call.effect.get("agent_name") or call.effect.get("name") or "")


def _on_command(rules: Sequence[PermissionRule], call: PermittedCall, command: str) -> Ruling | None:
    analysis = analyse(command)
    if analysis is not None and not analysis.commands:
        analysis = None
    folder = call.effect.get("dir_path")
    place = call.workspace / folder if isinstance(folder, str) else call.workspace
    paths = command_paths(command, analysis, place)
    texts = _spellings(command, analysis)
    for decision in _STRICT:
        for rule in rules:
            if rule.decision is not decision:
                continue
            match rule.condition:
                case None:
                    return _ruling(rule)
                case CommandPattern() as pattern:
                    if any(map(pattern.matches, texts)) or (analysis is None and _is_hidden(pattern, command)):
                        return _ruling(rule)
                case PathRule() as path_rule:
                    found = paths.changed if rule.tool == "Edit" else paths.read
                    if compiled((path_rule,)).find_any(found) is not None:
                        return _ruling(rule)
                case _:
                    pass
    for rule in rules:
        if rule.decision not in _STRICT:
            continue
        if analysis is None and isinstance(rule.condition, CommandPattern):
            reason = f"what this command would run cannot be determined, and {rule.where} is about some commands"
            return Ruling(RuleDecision.ASK, reason)
        if not paths.are_all and isinstance(rule.condition, PathRule):
            return Ruling(RuleDecision.ASK, f"this command names too many files, and {rule.where} is about some")
    return _allowed(rules, analysis)


def _spellings(command: str, analysis: ShellAnalysis | None) -> Sequence[str]:
    """Return the ways to write a command and its parts, of which one is enough to forbid it."""
    texts = [command.strip()]
    for simple in analysis.commands if analysis is not None else ():
        name = Path(simple.words[0]).name
        texts += [shlex.join(simple.words), " ".join(simple.words), " ".join((name, *simple.words[1:]))]
    return tuple(dict.fromkeys(texts))


def _is_hidden(pattern: CommandPattern, command: str) -> bool:
    """Return whether a command that is not understood contains the words of a rule."""
    words = pattern.beginning
    return bool(words) and re.search(rf"(?<![\w-]){re.escape(words)}(?![\w-])", " ".join(command.split())) is not None


def _allowed(rules: Sequence[PermissionRule], analysis: ShellAnalysis | None) -> Ruling | None:
    """Return the permission of the rules for a command, all parts of which they allow; otherwise None."""
    allowing = [rule for rule in rules if rule.decision is RuleDecision.ALLOW]
    whole = next((rule for rule in allowing if rule.condition is None), None)
    if whole is not None:
        return _ruling(whole)
    if analysis is None or analysis.asked or analysis.writes_files:
        return None
    found: list[PermissionRule] = []
    for simple in analysis.commands:
        text = shlex.join(simple.words)
        fitting = (
            rule for rule in allowing if isinstance(rule.condition, CommandPattern) and rule.condition.matches(text)
        )
        if (rule := next(fitting, None)) is None:
            return None
        found.append(rule)
    return _ruling(found[0]) if found else None


def _ruling(rule: PermissionRule) -> Ruling:
    return Ruling(rule.decision, f"{rule.where} {rule.decision.verb} it")
