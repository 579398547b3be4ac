"""Rules of the settings on tools, approvals and answers. Pure; ``loading`` reads them from the files.

Every settings file counts for the rules of a folder, and each can only forbid more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TypeVar

from isthmus.record import record
from isthmus.settings.rules.hooks import Hook
from isthmus.settings.rules.permissions import PermissionRule
from isthmus.settings.rules.rule_decision import RuleDecision


@record
class ToolEntry:
    """An entry such as ``run_shell_command(git status)``: a tool's name, and the words that a command begins with.

    :mod:`isthmus.agent` decides which tools it means.
    """

    text: str
    name: str
    words: tuple[str, ...] = ()


@record
class ToolList:
    """The entries of one file, and their key there; ``where`` is the name of the file in messages."""

    key: str
    where: str
    entries: tuple[ToolEntry, ...]


@record
class ToolRules:
    """Gemini CLI's ``tools.exclude``, ``tools.core`` and ``tools.confirmationRequired``.

    Tools in ``excluded`` do not run, only tools in every list of ``core`` do, and those in ``confirmed`` always need an
    answer.
    """

    excluded: tuple[ToolList, ...] = ()
    core: tuple[ToolList, ...] = ()
    confirmed: tuple[ToolList, ...] = ()


@record
class PolicyRule:
    """A rule of a policy file: what a call must be like, and what is then decided.

    Attributes:
        decision: what is decided.
        priority: the number that orders all rules; the first one that applies to a call counts.
        where: name of the rule in messages.
        tool: name of the tools, perhaps with ``*``.
        server: MCP server of the tools, ``*`` for any; None for no condition.
        prefix: beginning of the shell command, or None.
        pattern: regular expression that the arguments contain, in the form of Gemini CLI; or None.
        modes: approval modes in which the rule counts; empty for all.
        interactive: whether a user can be asked; None for no condition.
        message: reason that is given for a refusal; may be empty.
        allows_redirection: whether an allowed command may write files by ``>``.
        subagent: name of the subagent whose calls it decides; None for all calls.
        layer: folder of the project or extension that states it, which is decided apart from others; empty for the
            rules of the user and of the machine, which count before each of them.
    """

    decision: RuleDecision
    priority: float
    where: str
    tool: str = "*"
    server: str | None = None
    prefix: str | None = None
    pattern: str | None = None
    modes: tuple[str, ...] = ()
    interactive: bool | None = None
    message: str = ""
    allows_redirection: bool = False
    subagent: str | None = None
    layer: str = ""

    @property
    def has_argument_condition(self) -> bool:
        """Whether it depends on the arguments of a call."""
        return self.prefix is not None or self.pattern is not None


@record
class FolderRules:
    """Rules of a folder on tools, on the approval mode ``yolo`` and on answers that hold for more than one call.

    ``yolo_refusal`` is the reason why ``yolo`` is refused, or None. ``policies`` are the rules of policy files, those
    that count first at the beginning, and ``permissions`` those of Claude Code. ``hooks`` are programs that run
    at events.
    """

    tools: ToolRules = field(default_factory=ToolRules)
    yolo_refusal: str | None = None
    keeps_answers: bool = True
    policies: tuple[PolicyRule, ...] = ()
    hooks: tuple[Hook, ...] = ()
    permissions: tuple[PermissionRule, ...] = ()

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
            _merged(self.policies, other.policies),
            tuple(dict.fromkeys((*self.hooks, *other.hooks))),
            _common(self.permissions, other.permissions),
        )

    def described(self) -> tuple[str, ...]:
        """Return the rules that forbid something or require a question, each with the file that states it."""
        lists = (*self.tools.excluded, *self.tools.core, *self.tools.confirmed)
        yolo = () if self.yolo_refusal is None else (f"approval mode yolo: {self.yolo_refusal}",)
        kept = () if self.keeps_answers else ("no answer holds for more than one call",)
        hooks = dict.fromkeys(hook.where for hook in self.hooks)
        ruled = (*self.policies, *self.permissions)
        forbidding = [rule.where for rule in ruled if rule.decision is not RuleDecision.ALLOW]
        return (*(f"{rules.key} of {rules.where}" for rules in lists), *dict.fromkeys(forbidding), *hooks, *yolo, *kept)


@record
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


_Rule = TypeVar("_Rule", PolicyRule, PermissionRule)


def in_order(rules: Iterable[PolicyRule]) -> tuple[PolicyRule, ...]:
    """Return rules in the order in which they count: of the same priority the stricter one first."""
    return tuple(sorted(rules, key=lambda rule: (-rule.priority, rule.decision.leniency)))


def _merged(first: tuple[PolicyRule, ...], second: tuple[PolicyRule, ...]) -> tuple[PolicyRule, ...]:
    return in_order(_common(first, second))


def _common(first: tuple[_Rule, ...], second: tuple[_Rule, ...]) -> tuple[_Rule, ...]:
    """Return the rules of two folders; what only one of them allows is not allowed."""
    common = set(first) & set(second)
    return tuple(
        rule for rule in dict.fromkeys((*first, *second)) if rule in common or rule.decision is not RuleDecision.ALLOW
    )
