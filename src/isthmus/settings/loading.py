"""Reads the settings files into a frozen record: Gemini CLI's keys, and our own under ``isthmus``. Blocks.

Each key is read as its row in :mod:`isthmus.settings.keys` says, only from the files that the row allows. What is made
of several keys, or with other files, is made here. Defaults are decided by the programs that use the settings.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from isthmus.record import record
from isthmus.settings import keys
from isthmus.settings.claude_files import read_claude_files
from isthmus.settings.extensions import Extensions, find_extensions
from isthmus.settings.field_keys import keys_of_fields
from isthmus.settings.guards import missing_guards, unused_keys
from isthmus.settings.hook_files import Hooks, read_hooks
from isthmus.settings.in_force import settings_in_force
from isthmus.settings.misspelt import misspelt_keys
from isthmus.settings.permission_files import Permissions, read_permissions
from isthmus.settings.policy_files import Policies, read_policies
from isthmus.settings.rules.rules import FolderRules, ToolList, ToolRules, parse_entry
from isthmus.settings.setting_key import Setter, SettingKey
from isthmus.settings.settings import Settings
from isthmus.settings.settings_file import Owner, SettingsSource
from isthmus.settings.sources import OF_OWNER, Sources, read_sources
from isthmus.settings.trust.forms import folder_refusal
from isthmus.settings.trust.items import ProjectItem

LOCAL_PREFIXES = ("scripted", "ollama", "demo")
"""Prefixes of model names that a project's file may not use.

A script in the repository would make the tool calls in the model's place, and any user of this machine may run the
local server.
"""


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
    project_model, refused_model = _project_model(files)
    extensions = find_extensions(home, project, environment)
    policies = read_policies(files, project, home, extensions.enabled)
    claude = read_claude_files(files, project, home, environment)
    hooks = read_hooks(files, claude, extensions.enabled)
    permissions = read_permissions(files, claude, project, home)
    folders, refused_folders = _further_folders(files, project, home)
    made = Settings(
        model=_model(files.files_of_user),
        project_model=project_model,
        approval_mode=files.read(keys.DEFAULT_APPROVAL_MODE) or permissions.mode,
        included_folders=(*folders, *permissions.folders),
        rules=_folder_rules(files, policies, hooks, permissions, extensions),
        guards=_guards(files, policies, hooks, permissions, extensions),
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
    return _with_values(made, files)


def _with_values(settings: Settings, files: Sources) -> Settings:
    """Return the settings with the values of the files in all fields that are read of keys alone."""
    read = ((name, of.read) for name, of in keys_of_fields(Settings))
    values: dict[str, object] = {name: value(files) for name, value in read if value is not None}
    return replace(settings, **values)


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
        _first_on(files, keys.DISABLE_ALWAYS_ALLOW, keys.SECURE_MODE) is None,
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
    def read(key: SettingKey[tuple[tuple[SettingsSource, tuple[str, ...]], ...]]) -> tuple[ToolList, ...]:
        return tuple(
            ToolList(key.name, files.where(source), tuple(map(parse_entry, entries)))
            for source, entries in files.read(key)
        )

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
        excluded=(*(rules for rules in read(keys.TOOLS_EXCLUDE) if rules.entries), *of_extensions),
        core=read(keys.TOOLS_CORE),
        confirmed=tuple(rules for rules in read(keys.TOOLS_CONFIRMATION_REQUIRED) if rules.entries),
    )


def _model(sources: Sequence[SettingsSource]) -> str | None:
    """Return the model that files name: our own key counts before Gemini CLI's."""
    for key in (keys.MODEL, keys.MODEL_NAME):
        if (name := (key.read(sources) or "").strip()) != "":
            return name
    return None


def _project_model(files: Sources) -> tuple[str | None, tuple[str, ...]]:
    """Return the model that the project's file names, or a line about a model that it may not name."""
    of_project = files.of_project(keys.MODEL_NAME)
    name = _model(of_project)
    if name is None or name.partition(":")[0].lower() not in LOCAL_PREFIXES:
        return name, ()
    problem = "only -m and your own settings can choose scripts and servers of this machine"
    return None, (f"{of_project[0].path} names the model {name[:200]!r}, which is not used: {problem}",)


def _further_folders(files: Sources, project: Path, home: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the further folders that the settings name, and lines about those that a project may not name."""
    key = keys.INCLUDE_DIRECTORIES
    kept: list[str] = []
    lines: list[str] = []
    for source, names in files.read(key):
        for name in names:
            refusal = folder_refusal(project, home, name) if source.owner is Owner.PROJECT else None
            if refusal is None:
                kept.append(name)
            else:
                lines.append(f"{source.path}: {key.name} names {name!r:.200}, which is not used: {refusal}")
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
    found = [(file.path, key) for file, key in files.ignored()]
    yours = [key.name for _, key in found if key.setter is Setter.USER]
    untrusted = [key.name for _, key in found if key.setter is Setter.TRUSTED and key is not keys.MCP_SERVERS]
    lines: list[str] = []
    if yours:
        lines.append(f"{found[0][0]}: not used, because only your own settings may set it: {', '.join(yours)}")
    if untrusted:
        lines.append(
            f"{found[0][0]}: not used, because the folder is not trusted: {', '.join(untrusted)}"
            f" (`isthmus trust {project}` changes that)"
        )
    return tuple(lines)


def _first_on(files: Sources, *switches: SettingKey[SettingsSource | None]) -> tuple[str, str] | None:
    """Return the name of the first of some switches that is on, and the name of its file."""
    for key in switches:
        if (source := files.read(key)) is not None:
            return key.name, files.where(source)
    return None


def _yolo_refusal(files: Sources, guards: tuple[str, ...]) -> str | None:
    if (switch := _first_on(files, keys.DISABLE_YOLO_MODE, keys.SECURE_MODE)) is not None:
        return f"{switch[0]} in {switch[1]} forbids it"
    if guards:
        return f"Isthmus does not apply these guards, so a user must be asked instead: {'; '.join(guards)}"
    return None
