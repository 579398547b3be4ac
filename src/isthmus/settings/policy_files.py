"""Reads Gemini CLI's policy files (``policies/*.toml``) into rules. Blocks.

:mod:`isthmus.agent.approval.policy_rules` applies the rules. A rule that cannot be applied as it is written is a
problem: it is named at the start, ``yolo`` is refused, and nothing is allowed by the other rules, because that rule
might have forbidden it. The files of projects and of Gemini CLI's extensions can only forbid or ask.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import cast

from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.settings.extensions import Extension
from isthmus.settings.keys import ADMIN_POLICY_PATHS, POLICY_PATHS
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.settings.rules.rules import PolicyRule, in_order
from isthmus.settings.setting_key import SettingKey
from isthmus.settings.settings_file import insecure_system_file
from isthmus.settings.sources import OF_OWNER, Sources, system_folder
from isthmus.text.linear_pattern import LinearPattern, UnsupportedPatternError

MAXIMUM_POLICY_BYTES = 1024 * 1024
"""Maximum size of a policy file in bytes."""
MAXIMUM_POLICY_FILES = 200
"""Maximum number of policy files that are read."""
MAXIMUM_RULES = 1000
"""Maximum number of rules of all files, counted for each tool and prefix that they name."""
MAXIMUM_PRIORITY = 999
"""Maximum priority of a rule inside its tier."""

MODES: Mapping[str, str] = {"default": "default", "autoEdit": "auto_edit", "plan": "plan", "yolo": "yolo"}
"""Approval modes by their names in policy files."""
_SHELL = "run_shell_command"
_FIELDS = frozenset(
    {
        "toolName",
        "subagent",
        "mcpName",
        "argsPattern",
        "commandPrefix",
        "commandRegex",
        "decision",
        "priority",
        "modes",
        "interactive",
        "toolAnnotations",
        "allowRedirection",
        "allow_redirection",
        "denyMessage",
        "deny_message",
    }
)


class Tier(Enum):
    """Tier of a policy file, which counts before the priorities of its rules."""

    EXTENSION = 2
    PROJECT = 3
    USER = 4
    ADMIN = 5


@record
class Policies:
    """Rules of the policy files in the order in which they count.

    ``problems`` are lines about rules that are not applied, each of which refuses ``yolo``. ``unused`` are lines about
    files that somebody else may have written, and about rules that Gemini CLI does not apply either.
    """

    rules: tuple[PolicyRule, ...] = ()
    problems: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()


@record
class _Place:
    """A policy file with its tier; ``layer`` is the folder of the project or extension that has it, or empty."""

    tier: Tier
    path: Path
    layer: str = ""

    @property
    def only_forbids(self) -> bool:
        """Whether its rules cannot allow anything."""
        return bool(self.layer)


class _RuleError(ValueError):
    """A rule cannot be applied; the text says why."""


def read_policies(files: Sources, project: Path, home: Path, extensions: Sequence[Extension] = ()) -> Policies:
    """Read the policy files that count for work in ``project``, those of ``extensions`` included.

    Raises:
        SettingsError: ``policyPaths`` or ``adminPolicyPaths`` has the wrong type.
    """
    rules: list[PolicyRule] = []
    problems: list[str] = []
    places, unused = _places(files, project, home, extensions)
    if len(places) > MAXIMUM_POLICY_FILES:
        problems.append(f"there are more than {MAXIMUM_POLICY_FILES} policy files; the first ones are used")
        places = places[:MAXIMUM_POLICY_FILES]
    for place in places:
        where = _where(files, place)
        try:
            found, wrong, not_applied = _read(place, where)
        except OSError as error:
            found, wrong, not_applied = [], [f"policy {where:.500} cannot be read: {error.strerror or error}"], []
        except (ValueError, RecursionError):
            found, wrong, not_applied = [], [f"policy {where:.500} is not TOML"], []
        rules += found
        problems += wrong
        unused += not_applied
    if len(rules) > MAXIMUM_RULES:
        problems.append(f"policy files have {len(rules)} rules, of which {MAXIMUM_RULES} are used")
        rules = [rule for rule in rules if rule.decision is not RuleDecision.ALLOW][:MAXIMUM_RULES]
    if problems:
        rules = [rule for rule in rules if rule.decision is not RuleDecision.ALLOW]
    return Policies(in_order(rules), tuple(dict.fromkeys(problems)), tuple(dict.fromkeys(unused)))


def _places(
    files: Sources, project: Path, home: Path, extensions: Sequence[Extension]
) -> tuple[list[_Place], list[str]]:
    """Return the policy files in the order in which they count, and lines about those that are not used."""
    unused: list[str] = []
    of_system: list[Path] = []
    for path in _policy_files(system_folder() / "policies"):
        if (problem := insecure_system_file(path)) is None:
            of_system.append(path)
        else:
            unused.append(problem)
    of_user = _named(files, POLICY_PATHS)
    user_folder = home / ".gemini" / "policies"
    if of_user is None:
        of_user = _policy_files(user_folder)
    of_admin = of_system or _named(files, ADMIN_POLICY_PATHS) or []
    own = project / ".gemini" / "policies"
    is_missing = not os.path.lexists(own)
    of_project = [] if is_missing or own.resolve() == user_folder.resolve() else _policy_files(own)
    places = [
        *(_Place(Tier.ADMIN, path) for path in of_admin),
        *(_Place(Tier.USER, path) for path in of_user),
        *(_Place(Tier.PROJECT, path, str(project)) for path in of_project),
    ]
    for extension in extensions:
        folder = extension.folder / "policies"
        if os.path.lexists(folder):
            # A folder that cannot be listed is named when it is read.
            places += [_Place(Tier.EXTENSION, path, str(extension.folder)) for path in _files_at(folder)]
    return places, unused


def _named(files: Sources, key: SettingKey[tuple[str, ...]]) -> list[Path] | None:
    """Return the policy files that a setting names, by themselves or by their folders; None without the setting."""
    paths = [Path(path) for path in files.read(key)]
    if not paths:
        return None
    return [file for path in paths for file in _files_at(path)]


def _files_at(path: Path) -> list[Path]:
    files = _listed(path)
    return [path] if files is None else files


def _policy_files(folder: Path) -> list[Path]:
    return _listed(folder) or []


def _listed(folder: Path) -> list[Path] | None:
    """Return the policy files of a folder; None if it is not one."""
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".toml")[: MAXIMUM_POLICY_FILES + 1]
    except (OSError, ValueError):
        return None


def _where(files: Sources, place: _Place) -> str:
    if files.names_files:
        return str(place.path)
    if place.tier is Tier.PROJECT:
        return f"the project's .gemini/policies/{place.path.name}"
    return f"files in {OF_OWNER}"


def _read(place: _Place, where: str) -> tuple[list[PolicyRule], list[str], list[str]]:
    """Return the rules of a file, lines about rules with problems, and lines about rules that nobody applies."""
    import tomllib  # Most users have no policy files.

    policy = tomllib.loads(read_regular(place.path, MAXIMUM_POLICY_BYTES).decode())
    rules: list[PolicyRule] = []
    problems: list[str] = []
    unused: list[str] = []
    for number, raw in enumerate(as_list(policy.get("rule")), 1):
        fields = as_object(raw)
        of_rule = f"rule {number} of the policy {where}"
        try:
            found = list(_rules(fields, place, of_rule))
        except _RuleError as error:
            problems.append(f"{of_rule}: {error}")
            continue
        if place.only_forbids:
            found = [rule for rule in found if rule.decision is not RuleDecision.ALLOW]
        if place.tier is Tier.EXTENSION and any("yolo" in rule.modes for rule in found):
            unused.append(
                f"{of_rule} is not applied, as in Gemini CLI: an extension's rule must not name the mode yolo"
            )
            continue
        rules += found
    if policy.get("rule") is not None and not isinstance(policy["rule"], list):
        problems.append(f"policy {where}: expected [[rule]], found something else named rule")
    if policy.get("safety_checker"):
        problems.append(f"policy {where}: safety checkers are not run")
    return rules, problems, unused


def _rules(fields: Mapping[str, object], place: _Place, where: str) -> Iterator[PolicyRule]:
    """Yield a rule for each tool, prefix or pattern that a rule of a file names."""
    decision = _decision(fields)
    if unknown := sorted(set(fields) - _FIELDS):
        raise _RuleError(f"unknown field {unknown[0][:100]!r}")
    if fields.get("toolAnnotations"):
        if decision is RuleDecision.ALLOW:
            return
        raise _RuleError("toolAnnotations are not supported")
    priority = fields.get("priority")
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAXIMUM_PRIORITY:
        raise _RuleError(f"expected a priority from 0 to {MAXIMUM_PRIORITY}")
    server = _text(fields, "mcpName")
    tools = _texts(fields, "toolName") or ("*",)
    if "" in tools or server == "":
        raise _RuleError("toolName and mcpName must not be empty")
    prefixes, pattern = _conditions(fields, tools)
    interactive = fields.get("interactive")
    if interactive is not None and not isinstance(interactive, bool):
        raise _RuleError("interactive must be true or false")
    for tool in tools:
        for prefix in prefixes or (None,):
            yield PolicyRule(
                decision,
                place.tier.value + priority / 1000,
                where,
                tool,
                server,
                prefix,
                pattern,
                tuple(_modes(fields)),
                interactive,
                _text(fields, "denyMessage") or _text(fields, "deny_message") or "",
                (fields.get("allowRedirection") or fields.get("allow_redirection")) is True,
                _text(fields, "subagent"),
                place.layer,
            )


def _decision(fields: Mapping[str, object]) -> RuleDecision:
    for decision in RuleDecision:
        if fields.get("decision") == decision.value:
            return decision
    raise _RuleError("expected a decision: allow, ask_user or deny")


def _conditions(fields: Mapping[str, object], tools: tuple[str, ...]) -> tuple[tuple[str, ...], str | None]:
    prefixes = _texts(fields, "commandPrefix")
    regex, pattern = _text(fields, "commandRegex"), _text(fields, "argsPattern")
    if sum((bool(prefixes), regex is not None, pattern is not None)) > 1:
        raise _RuleError("expected only one of commandPrefix, commandRegex and argsPattern")
    if (prefixes or regex is not None) and tools != (_SHELL,):
        raise _RuleError(f'commandPrefix and commandRegex need toolName = "{_SHELL}"')
    source = pattern if regex is None else f'"command":"{regex}'
    if source is not None:
        try:
            LinearPattern(source)
        except UnsupportedPatternError as error:
            raise _RuleError(f"its pattern cannot be searched in linear time: {error}") from error
    return prefixes, source or None


def _modes(fields: Mapping[str, object]) -> Iterable[str]:
    for name in _texts(fields, "modes"):
        if name not in MODES:
            raise _RuleError(f"expected modes out of {', '.join(MODES)}, found {name[:100]!r}")
        yield MODES[name]


def _text(fields: Mapping[str, object], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _RuleError(f"expected text for {name}")
    return value


def _texts(fields: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = fields.get(name)
    if value is None:
        return ()
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(item, str) for item in items):
        raise _RuleError(f"expected text, or a list of texts, for {name}")
    return tuple(cast("list[str]", items))
