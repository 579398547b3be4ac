"""Reads the settings files into a frozen record: Gemini CLI's keys, and our own under ``isthmus``.

Each key is read only from the files that :mod:`isthmus.settings.keys` allows. Defaults are decided by the programs that
use the settings.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from isthmus.record import record
from isthmus.sandbox.settings import CommandSandbox
from isthmus.settings import values
from isthmus.settings.claude_files import read_claude_files
from isthmus.settings.env_files import EXCLUDED_VARIABLES
from isthmus.settings.extensions import Extensions, find_extensions
from isthmus.settings.guards import missing_guards, unused_keys
from isthmus.settings.hook_files import Hooks, read_hooks
from isthmus.settings.in_force import SettingInForce, settings_in_force
from isthmus.settings.keys import KEYS, Setter
from isthmus.settings.misspelt import misspelt_keys
from isthmus.settings.permission_files import Permissions, read_permissions
from isthmus.settings.policy_files import Policies, read_policies
from isthmus.settings.rules import FolderRules, ReadOnlyTools, ToolList, ToolRules, parse_entry
from isthmus.settings.settings_file import Owner
from isthmus.settings.sources import OF_OWNER, Sources, read_sources
from isthmus.settings.trust.forms import folder_refusal
from isthmus.settings.trust.items import ProjectItem

LOCAL_PREFIXES = ("scripted", "ollama", "demo")
"""Prefixes of model names that a project's file may not use.

A script in the repository would make the tool calls in the model's place, and any user of this machine may run the
local server.
"""


@record
class Settings:
    """Values of the settings files; None or empty if no file has the key (see :mod:`isthmus.settings.keys`)."""

    model: str | None = None
    """``isthmus.model`` or ``model.name`` of the user's or the system's file."""
    project_model: str | None = None
    """The same from a trusted project's file: it names a model of the provider that is used anyway."""
    thinking_effort: str | None = None
    """``isthmus.thinkingEffort``: ``low``, ``medium`` or ``high``."""
    fallback_models: tuple[str, ...] = ()
    """``isthmus.fallbackModels``, as they are written."""
    uses_skills: bool = True
    disabled_skills: tuple[str, ...] = ()
    uses_subagents: bool = True
    disabled_subagents: tuple[str, ...] = ()
    """Names that ``agents.overrides`` switches off."""
    approval_mode: str | None = None
    allowed_tools: tuple[str, ...] = ()
    max_model_turns: int | None = None
    """``model.maxSessionTurns``; negative for no limit."""
    stops_loops: bool = True
    """False with ``model.disableLoopDetection``."""
    compaction_share: float | None = None
    """``model.compressionThreshold``, a share of the model's context window."""
    ide_enabled: bool | None = None
    has_vi_keys: bool = False
    """``general.vimMode``."""
    context_files: tuple[str, ...] = ()
    """``context.fileName``: one name or several."""
    included_folders: tuple[str, ...] = ()
    """``context.includeDirectories`` and Claude Code's ``permissions.additionalDirectories``, as they are written."""
    journal_maximum_size: int | None = None
    """``isthmus.journal.maxSize`` in bytes; 0 means no maximum."""
    attention: str | None = None
    """``isthmus.terminal.attention``."""
    theme: str | None = None
    """``isthmus.terminal.theme``."""
    parts: tuple[str, ...] = ()
    """``isthmus.parts``: names of entry points."""
    token_store: str | None = None
    tool_search: str | None = None
    tool_search_share: float | None = None
    read_only_tools: ReadOnlyTools = field(default_factory=ReadOnlyTools)
    keeps_approvals: bool = False
    """``security.enablePermanentToolApproval``."""
    sandbox: CommandSandbox = field(default_factory=CommandSandbox)
    rules: FolderRules = field(default_factory=FolderRules)
    """Prohibitions of the files for this folder."""
    excluded_variables: tuple[str, ...] = EXCLUDED_VARIABLES
    ignores_local_env: bool = False
    guards: tuple[str, ...] = ()
    """Settings that forbid, ask or hide something but that Isthmus does not apply, each with its file."""
    unused: tuple[str, ...] = ()
    """Names of the other keys that are not used."""
    files: tuple[Path, ...] = ()
    in_force: tuple[SettingInForce, ...] = ()
    """The settings that count, to be shown."""
    is_trusted: bool = field(default=False, compare=False)
    """Whether the folder counted as trusted; settings are compared to see whether its trust makes a difference."""
    ignored: tuple[str, ...] = ()
    """Lines about keys that the project's file may not set, and about files that are not used."""


@record
class RulesByTrust:
    """The rules for a folder while the user does not trust it, and while they do."""

    untrusted: FolderRules
    trusted: FolderRules


def load_settings(
    project: Path, home: Path, environment: Mapping[str, str] = os.environ, *, is_trusted: bool = False
) -> Settings:
    """Return the settings for work in ``project`` by the user whose home folder is ``home``.

    ``is_trusted``: the user trusts the folder ``project``.

    Raises:
        SettingsError: a file is not JSON (line and column are named), or a value has the wrong type.
    """
    files = read_sources(project, home, environment, is_trusted=is_trusted)
    of = files.of
    project_model, refused_model = _project_model(files)
    extensions = find_extensions(home, project, environment)
    policies = read_policies(files, project, home, extensions.enabled)
    claude = read_claude_files(files, project, home, environment)
    hooks = read_hooks(files, claude, extensions.enabled)
    permissions = read_permissions(files, claude, project, home)
    guards = _guards(files, policies, hooks, permissions, extensions)
    limit = values.first(of("model.maxSessionTurns"), "model.maxSessionTurns", int)
    folders, refused_folders = _further_folders(files, project, home)
    return Settings(
        model=_model(files, of_project=False),
        project_model=project_model,
        thinking_effort=values.choice(
            of("isthmus.thinkingEffort"), "isthmus.thinkingEffort", ("low", "medium", "high")
        ),
        uses_skills=not any(values.is_off(of(key), key) for key in ("skills.enabled", "admin.skills.enabled")),
        disabled_skills=tuple(
            name for _, names in values.lists(of("skills.disabled"), "skills.disabled") for name in names
        ),
        uses_subagents=not values.is_off(of("experimental.enableAgents"), "experimental.enableAgents"),
        disabled_subagents=values.switched_off(of("agents.overrides"), "agents.overrides"),
        fallback_models=values.strings(of("isthmus.fallbackModels"), "isthmus.fallbackModels"),
        approval_mode=values.first(of("general.defaultApprovalMode"), "general.defaultApprovalMode", str)
        or permissions.mode,
        allowed_tools=values.strings(of("tools.allowed"), "tools.allowed"),
        max_model_turns=limit or None,
        stops_loops=not values.first(of("model.disableLoopDetection"), "model.disableLoopDetection", bool),
        compaction_share=values.share(of("model.compressionThreshold"), "model.compressionThreshold"),
        ide_enabled=values.first(of("ide.enabled"), "ide.enabled", bool),
        has_vi_keys=bool(values.first(of("general.vimMode"), "general.vimMode", bool)),
        included_folders=(*folders, *permissions.folders),
        context_files=values.file_names(of("context.fileName"), "context.fileName"),
        journal_maximum_size=values.size(of("isthmus.journal.maxSize"), "isthmus.journal.maxSize"),
        attention=values.choice(
            of("isthmus.terminal.attention"), "isthmus.terminal.attention", ("all", "bell", "none")
        ),
        theme=values.choice(of("isthmus.terminal.theme"), "isthmus.terminal.theme", ("auto", "light", "dark", "none")),
        parts=values.strings(of("isthmus.parts"), "isthmus.parts"),
        token_store=values.choice(of("isthmus.tokenStore"), "isthmus.tokenStore", ("file", "keyring")),
        tool_search=values.choice(of("isthmus.toolSearch"), "isthmus.toolSearch", ("auto", "always", "never")),
        tool_search_share=values.share(of("isthmus.toolSearchShare"), "isthmus.toolSearchShare"),
        read_only_tools=values.read_only(of("isthmus.approval.readOnlyTools"), "isthmus.approval.readOnlyTools"),
        keeps_approvals=bool(
            values.first(of("security.enablePermanentToolApproval"), "security.enablePermanentToolApproval", bool)
        ),
        sandbox=values.sandbox(of("tools.sandbox")),
        rules=_folder_rules(files, policies, hooks, permissions, extensions),
        excluded_variables=values.strings(of("advanced.excludedEnvVars"), "advanced.excludedEnvVars")
        or EXCLUDED_VARIABLES,
        ignores_local_env=_first_on(files, "advanced.ignoreLocalEnv") is not None,
        guards=guards,
        unused=unused_keys(files),
        files=tuple(file.path for file in files.files),
        in_force=settings_in_force(files),
        is_trusted=is_trusted,
        ignored=(
            *files.problems,
            *extensions.problems,
            *policies.unused,
            *hooks.notices,
            *permissions.notices,
            *refused_model,
            *refused_folders,
            *misspelt_keys(files),
            *_ignored(files, project),
            *(_left_out((*files.left_out, *claude.left_out), project) if is_trusted else ()),
        ),
    )


def load_folder_rules(
    project: Path, home: Path, environment: Mapping[str, str], *, names_files: bool = True
) -> RulesByTrust:
    """Return the rules of all settings files for a folder; ``names_files``: messages may contain their paths.

    Raises:
        SettingsError: as in :func:`load_settings`.
    """
    files = replace(read_sources(project, home, environment, is_trusted=False), names_files=names_files)
    extensions = find_extensions(home, project, environment)
    claude = read_claude_files(files, project, home, environment)
    policies = read_policies(files, project, home, extensions.enabled)  # a project's files name none

    def rules(files: Sources) -> FolderRules:
        hooks = read_hooks(files, claude, extensions.enabled)
        permissions = read_permissions(files, claude, project, home)
        return _folder_rules(files, policies, hooks, permissions, extensions)

    untrusted = rules(files)
    if all(file.owner is not Owner.PROJECT for file in (*files.files, *claude.files)):
        return RulesByTrust(untrusted, untrusted)
    return RulesByTrust(untrusted, rules(replace(files, is_trusted=True)))


def _folder_rules(
    files: Sources, policies: Policies, hooks: Hooks, permissions: Permissions, extensions: Extensions
) -> FolderRules:
    guards = _guards(files, policies, hooks, permissions, extensions)
    return FolderRules(
        _tool_rules(files, extensions),
        _yolo_refusal(files, guards) or permissions.yolo_refusal,
        _first_on(files, "security.disableAlwaysAllow", "admin.secureModeEnabled") is None,
        policies.rules,
        hooks.hooks,
        permissions.rules,
    )


def _guards(
    files: Sources, policies: Policies, hooks: Hooks, permissions: Permissions, extensions: Extensions
) -> tuple[str, ...]:
    of_extensions = _extension_guards(extensions)
    return (*missing_guards(files), *policies.problems, *hooks.problems, *permissions.problems, *of_extensions)


def _extension_guards(extensions: Extensions) -> tuple[str, ...]:
    return tuple(guard for extension in extensions.enabled for guard in extension.guards)


def _tool_rules(files: Sources, extensions: Extensions) -> ToolRules:
    def read(key: str) -> tuple[ToolList, ...]:
        found = values.lists(files.of(key), key)
        return tuple(ToolList(key, files.where(source), tuple(map(parse_entry, entries))) for source, entries in found)

    of_extensions = tuple(
        ToolList(
            "excludeTools",
            str(extension.manifest) if files.names_files else OF_OWNER,
            tuple(map(parse_entry, extension.excluded_tools)),
        )
        for extension in extensions.enabled
        if extension.excluded_tools
    )
    return ToolRules(
        excluded=(*(rules for rules in read("tools.exclude") if rules.entries), *of_extensions),
        core=read("tools.core"),
        confirmed=tuple(rules for rules in read("tools.confirmationRequired") if rules.entries),
    )


def _model(files: Sources, *, of_project: bool) -> str | None:
    for key in ("isthmus.model", "model.name"):
        counting = files.of_project(key) if of_project else files.of_user(key)
        if (name := (values.first(counting, key, str) or "").strip()) != "":
            return name
    return None


def _project_model(files: Sources) -> tuple[str | None, tuple[str, ...]]:
    """Return the model that the project's file names, or a line about a model that it may not name."""
    name = _model(files, of_project=True)
    if name is None or name.partition(":")[0].lower() not in LOCAL_PREFIXES:
        return name, ()
    path = files.of_project("model.name")[0].path
    problem = "only -m and your own settings can choose scripts and servers of this machine"
    return None, (f"{path} names the model {name[:200]!r}, which is not used: {problem}",)


def _further_folders(files: Sources, project: Path, home: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the further folders that the settings name, and lines about those that a project may not name."""
    key = "context.includeDirectories"
    kept: list[str] = []
    lines: list[str] = []
    for source, names in values.lists(files.of(key), key):
        for name in names:
            refusal = folder_refusal(project, home, name) if source.owner is Owner.PROJECT else None
            if refusal is None:
                kept.append(name)
            else:
                lines.append(f"{source.path}: {key} names {name!r:.200}, which is not used: {refusal}")
    return tuple(kept), tuple(lines)


def _left_out(items: Sequence[ProjectItem], project: Path) -> tuple[str, ...]:
    """Return a line about what a trusted project's files have and the user did not agree to."""
    if not items:
        return ()
    names = ", ".join(dict.fromkeys(f"{item.kind.value} {item.name} ({item.file})" for item in items))
    shown = f"`isthmus trust --show {project}` shows it, `isthmus trust {project}` allows it"
    return (f"not used, because it is new or changed since you trusted the folder: {names} ({shown})",)


def _ignored(files: Sources, project: Path) -> tuple[str, ...]:
    """Return a line with the keys of the project's file that are not used, for each reason."""
    found = [(file.path, KEYS[key]) for file, key in files.ignored()]
    yours = [key.name for _, key in found if key.setter is Setter.USER]
    untrusted = [key.name for _, key in found if key.setter is Setter.TRUSTED and key.name != "mcpServers"]
    lines: list[str] = []
    if yours:
        lines.append(f"{found[0][0]}: not used, because only your own settings may set it: {', '.join(yours)}")
    if untrusted:
        lines.append(
            f"{found[0][0]}: not used, because the folder is not trusted: {', '.join(untrusted)}"
            f" (`isthmus trust {project}` changes that)"
        )
    return tuple(lines)


def _first_on(files: Sources, *keys: str) -> tuple[str, str] | None:
    """Return the first of some switches that is on, and the name of its file."""
    for key in keys:
        if (source := values.first_enabled(files.of(key), key)) is not None:
            return key, files.where(source)
    return None


def _yolo_refusal(files: Sources, guards: tuple[str, ...]) -> str | None:
    if (switch := _first_on(files, "security.disableYoloMode", "admin.secureModeEnabled")) is not None:
        return f"{switch[0]} in {switch[1]} forbids it"
    if guards:
        return f"Isthmus does not apply these guards, so a user must be asked instead: {'; '.join(guards)}"
    return None
