"""Decisions of the rules of policy files on a tool call, with Gemini CLI's names of tools and form of arguments. Pure.

The first rule that applies counts, as :func:`isthmus.settings.rules.rules.in_order` sorts them. Of the decisions for
each
project and extension the strictest counts, so that none of them hides what another forbids. A shell command is also
decided in its parts, of which the strictest counts. What only the agent's own approval policy knows (modes, answers of
the user, guarded files) is in :mod:`isthmus.agent.approval.policy`.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from isthmus.agent.approval.grants import SHELL_NAMES
from isthmus.agent.approval.policy import ApprovalMode
from isthmus.agent.approval.shell_command import ShellAnalysis, analyse
from isthmus.record import record
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.settings.rules.rules import PolicyRule
from isthmus.text.linear_pattern import LinearPattern, TooMuchWorkError

_FOREIGN_TO_NAMES = re.compile(r"[^A-Za-z0-9_.-]")
_REDIRECTING = (ApprovalMode.AUTO_EDIT, ApprovalMode.YOLO)
"""Modes in which an allowed command may write files without `allowRedirection`, as in Gemini CLI."""


@record
class NamedTool:
    """A tool by its names: ``names`` are all that mean it, ``own`` is its name on its MCP server ``server``.

    ``loose`` names may also mean other tools, so they count only where a rule forbids or asks.
    """

    names: frozenset[str]
    own: str
    server: str | None = None
    loose: frozenset[str] = frozenset()


@record
class RuledCall:
    """A call that rules decide on; ``interactive`` is whether a user can be asked.

    ``effect`` has the arguments of the same call in another form, such as the whole path of the file that it edits, in
    which rules may forbid it too.
    """

    tool: NamedTool
    arguments: Mapping[str, Any]
    mode: ApprovalMode
    interactive: bool
    effect: Mapping[str, Any] | None = None


@record
class Ruling:
    """Decision of the rules on a call, with the reason for the model and the user."""

    decision: RuleDecision
    reason: str


def rule_on(rules: Sequence[PolicyRule], call: RuledCall) -> Ruling | None:
    """Return the decision of the rules on a call; None if none applies."""
    if not rules:
        return None
    rulings = [ruling for layer in _layers(rules) if (ruling := _rule_on(layer, call)) is not None]
    return min(rulings, key=lambda ruling: ruling.decision.leniency, default=None)


def _layers(rules: Sequence[PolicyRule]) -> Iterator[Sequence[PolicyRule]]:
    """Yield the rules that count for each project and extension, with those of the user and the machine."""
    layers = dict.fromkeys(rule.layer for rule in rules if rule.layer)
    if len(layers) < 2:
        yield rules
        return
    for layer in layers:
        yield [rule for rule in rules if rule.layer in ("", layer)]


def _rule_on(rules: Sequence[PolicyRule], call: RuledCall) -> Ruling | None:
    command = call.arguments.get("command")
    if SHELL_NAMES[0] in call.tool.names and isinstance(command, str):
        return _rule_on_command(rules, call, command)
    found = [_first(rules, call, call.arguments)]
    if call.effect is not None:
        found.append(_first(rules, call, call.effect))
    return _strictest(found) or (None if found[0] is None else _ruling(found[0]))


def exclusion(rules: Sequence[PolicyRule], tool: NamedTool) -> str | None:
    """Return why a tool is withheld from the model: a rule denies all calls of it in every mode. Otherwise None."""
    for layer in _layers(rules):
        rule = next((rule for rule in layer if rule.subagent is None and _names(rule, tool)), None)
        if rule is None or rule.has_argument_condition or rule.modes or rule.interactive is not None:
            continue
        if rule.decision is RuleDecision.DENY:
            return _ruling(rule).reason
    return None


def rules_for(rules: Sequence[PolicyRule], subagent: str | None) -> tuple[PolicyRule, ...]:
    """Return the rules that decide the calls of a subagent, or with None those of the agent itself."""
    return tuple(rule for rule in rules if rule.subagent is None or rule.subagent == subagent)


def may_allow(rules: Sequence[PolicyRule], tool: NamedTool) -> bool:
    """Return whether a rule allows some calls of a tool."""
    return any(rule.decision is RuleDecision.ALLOW and _names(rule, tool) for rule in rules)


def arguments_text(arguments: Mapping[str, Any]) -> str:
    r"""Return arguments as the text in which Gemini CLI searches patterns: sorted JSON, fields between ``\0``."""
    pairs = (f"\0{_json(name)}:{_json(arguments[name])}\0" for name in sorted(arguments))
    return "{" + ",".join(pairs) + "}"


def _rule_on_command(rules: Sequence[PolicyRule], call: RuledCall, command: str) -> Ruling | None:
    whole = _first(rules, call, call.arguments)
    analysis = analyse(command)
    if analysis is None or not analysis.commands:
        return _rule_on_unknown(rules, call, command, whole)
    found = [whole]
    allowing: list[PolicyRule | None] = []
    for simple in analysis.commands:
        shown = shlex.join(simple.words)
        name = Path(simple.words[0]).name
        spellings = (shown, " ".join(simple.words), " ".join((name, *simple.words[1:])))
        by_spelling = [_first(rules, call, {**call.arguments, "command": spelling}) for spelling in spellings]
        found += by_spelling
        allowing.append(by_spelling[0])
    return _strictest(found) or _allowed(allowing, analysis, call.mode)


def _strictest(found: Sequence[PolicyRule | None]) -> Ruling | None:
    """Return the decision of the first rule that forbids, else of the first one that asks, else None."""
    strict = (rule for rule in found if rule is not None and rule.decision is not RuleDecision.ALLOW)
    rule = min(strict, key=lambda rule: rule.decision.leniency, default=None)
    return None if rule is None else _ruling(rule)


def _allowed(rules: Sequence[PolicyRule | None], analysis: ShellAnalysis, mode: ApprovalMode) -> Ruling | None:
    """Return the permission that the rules on all parts of a command give, or None."""
    given = [rule for rule in rules if rule is not None and rule.decision is RuleDecision.ALLOW]
    if len(given) < len(rules) or not given:
        return None
    if analysis.asked and any(rule.has_argument_condition for rule in given):
        return None
    may_write = mode in _REDIRECTING or all(rule.allows_redirection for rule in given)
    return _ruling(given[0]) if may_write or not analysis.writes_files else None


def _rule_on_unknown(
    rules: Sequence[PolicyRule], call: RuledCall, command: str, whole: PolicyRule | None
) -> Ruling | None:
    """Return the decision on a command whose parts are unknown, which may contain one that a rule forbids."""
    if whole is not None and whole.decision is RuleDecision.DENY:
        return _ruling(whole)
    for rule in rules:
        is_hidden = rule.prefix is not None and rule.prefix in command
        if is_hidden and rule.decision is RuleDecision.DENY and _applies_besides_arguments(rule, call):
            return _ruling(rule)
    for rule in rules:
        is_for_parts = rule.has_argument_condition and rule.decision is not RuleDecision.ALLOW
        if is_for_parts and _applies_besides_arguments(rule, call):
            reason = f"what this command would run cannot be determined, and {rule.where} is about some commands"
            return Ruling(RuleDecision.ASK, reason)
    if whole is None or whole.decision is RuleDecision.ALLOW:
        return None
    return _ruling(whole)


def _first(rules: Sequence[PolicyRule], call: RuledCall, arguments: Mapping[str, Any]) -> PolicyRule | None:
    text: str | None = None
    for rule in rules:
        if not _applies_besides_arguments(rule, call):
            continue
        if rule.prefix is not None and not _begins(arguments.get("command"), rule.prefix):
            continue
        if rule.pattern is not None:
            text = arguments_text(arguments) if text is None else text
            if not _contains(rule, text):
                continue
        return rule
    return None


def _applies_besides_arguments(rule: PolicyRule, call: RuledCall) -> bool:
    is_in_mode = not rule.modes or call.mode.value in rule.modes
    return is_in_mode and rule.interactive in (None, call.interactive) and _names(rule, call.tool)


def _names(rule: PolicyRule, tool: NamedTool) -> bool:
    """Return whether a rule is about a tool."""
    if rule.server is not None and (tool.server is None or rule.server not in ("*", *_server_names(tool.server))):
        return False
    if rule.decision is not RuleDecision.ALLOW and rule.tool in tool.loose:
        return True
    if rule.tool == "*" or rule.tool in tool.names or (rule.server is not None and rule.tool == tool.own):
        return True
    return tool.server is not None and rule.tool in set(_wildcards(tool, tool.server))


def _wildcards(tool: NamedTool, server: str) -> Iterator[str]:
    yield from ("mcp_*", f"mcp_*_{tool.own}")
    for name in _server_names(server):
        yield from (f"mcp_{name}_*", f"mcp_{name}_{tool.own}")


def _server_names(server: str) -> tuple[str, ...]:
    """Return the name of a server, and the form of it that the names of its tools contain."""
    return server, _FOREIGN_TO_NAMES.sub("_", server)


def _begins(command: object, prefix: str) -> bool:
    """Return whether a command begins with a prefix, which ends there or before a space or quotation mark."""
    if not isinstance(command, str) or not command.startswith(prefix):
        return False
    rest = command[len(prefix) : len(prefix) + 1]
    return not rest or rest.isspace() or rest == '"'


def _contains(rule: PolicyRule, text: str) -> bool:
    """Return whether a rule's pattern is in a text; where that is too much work, only if the rule forbids or asks."""
    try:
        return _compiled(rule.pattern or "").is_in(text)
    except TooMuchWorkError:
        return rule.decision is not RuleDecision.ALLOW


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> LinearPattern:
    return LinearPattern(pattern)


def _ruling(rule: PolicyRule) -> Ruling:
    return Ruling(rule.decision, rule.message or f"{rule.where} {rule.decision.verb} it")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
