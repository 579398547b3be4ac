"""The settings, frozen: Gemini CLI's files as they are, and what is ours alone under the key ``isthmus``.

Each key is taken from the files that :mod:`isthmus.settings.keys` allows, and from no others. No services here, and no
defaults of the programs that use them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from isthmus.sandbox.settings import CommandSandbox
from isthmus.settings import values
from isthmus.settings.env_files import EXCLUDED_VARIABLES
from isthmus.settings.folder_rules import FolderRules
from isthmus.settings.guards import unbuilt_guards, unused_keys
from isthmus.settings.keys import KEYS, Setter
from isthmus.settings.read_only_tools import ReadOnlyTools
from isthmus.settings.sources import Sources, read_sources
from isthmus.settings.tool_rules import tool_rules

LOCAL_PREFIXES = ("scripted", "ollama", "demo")
"""Forms of a model's name that no project's file may use: a script's calls are the repository's words in the model's
place, and a server of this machine may be anybody's."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Values of the settings files; None where they say nothing. The keys stand in :mod:`isthmus.settings.keys`."""

    model: str | None = None
    """``isthmus.model`` or ``model.name`` of the user's or the system's file."""
    project_model: str | None = None
    """The same of a trusted project's file: a name for the provider that is in use anyway."""
    approval_mode: str | None = None
    allowed_tools: tuple[str, ...] = ()
    max_model_turns: int | None = None
    """``model.maxSessionTurns``; -1 there is no limit."""
    compaction_share: float | None = None
    """``model.compressionThreshold``, a share of the model's context window."""
    ide_enabled: bool | None = None
    context_files: tuple[str, ...] = ()
    """``context.fileName``: one name or several."""
    journal_maximum_size: int | None = None
    """``isthmus.journal.maxSize`` in bytes, 0 for none."""
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
    """Settings that forbid, ask or hide something and that Isthmus does not apply, each with its file."""
    unused: tuple[str, ...] = ()
    """Names of the other keys that are not used."""
    files: tuple[Path, ...] = ()
    ignored: tuple[str, ...] = ()
    """A line for what the project's file may not set, and for each file that was passed over."""


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
    limit = values.first(of("model.maxSessionTurns"), "model.maxSessionTurns", int)
    return Settings(
        model=_model(files, of_project=False),
        project_model=project_model,
        approval_mode=values.first(of("general.defaultApprovalMode"), "general.defaultApprovalMode", str),
        allowed_tools=values.strings(of("tools.allowed"), "tools.allowed"),
        max_model_turns=None if limit is None or limit < 0 else limit,
        compaction_share=values.share(of("model.compressionThreshold"), "model.compressionThreshold"),
        ide_enabled=values.first(of("ide.enabled"), "ide.enabled", bool),
        context_files=values.file_names(of("context.fileName"), "context.fileName"),
        journal_maximum_size=values.size(of("isthmus.journal.maxSize"), "isthmus.journal.maxSize"),
        token_store=values.choice(of("isthmus.tokenStore"), "isthmus.tokenStore", ("file", "keyring")),
        tool_search=values.choice(of("isthmus.toolSearch"), "isthmus.toolSearch", ("auto", "always", "never")),
        tool_search_share=values.share(of("isthmus.toolSearchShare"), "isthmus.toolSearchShare"),
        read_only_tools=values.read_only(of("isthmus.approval.readOnlyTools"), "isthmus.approval.readOnlyTools"),
        keeps_approvals=bool(
            values.first(of("security.enablePermanentToolApproval"), "security.enablePermanentToolApproval", bool)
        ),
        sandbox=values.sandbox(of("tools.sandbox")),
        rules=_folder_rules(files, home, environment),
        excluded_variables=values.strings(of("advanced.excludedEnvVars"), "advanced.excludedEnvVars")
        or EXCLUDED_VARIABLES,
        ignores_local_env=_first_on(files, "advanced.ignoreLocalEnv") is not None,
        guards=unbuilt_guards(files, home, environment),
        unused=unused_keys(files),
        files=tuple(file.path for file in files.files),
        ignored=(*files.problems, *refused_model, *_ignored(files, project)),
    )


def load_folder_rules(
    project: Path, home: Path, environment: Mapping[str, str], *, is_trusted: bool, names_files: bool = True
) -> FolderRules:
    """Return what all settings files together forbid in a folder; ``names_files``: its texts hold their paths.

    Raises:
        SettingsError: as in :func:`load_settings`.
    """
    files = read_sources(project, home, environment, is_trusted=is_trusted)
    return _folder_rules(replace(files, names_files=names_files), home, environment)


def _folder_rules(files: Sources, home: Path, environment: Mapping[str, str]) -> FolderRules:
    return FolderRules(
        tool_rules(files),
        _yolo_refusal(files, unbuilt_guards(files, home, environment)),
        _first_on(files, "security.disableAlwaysAllow", "admin.secureModeEnabled") is None,
    )


def _model(files: Sources, *, of_project: bool) -> str | None:
    for key in ("isthmus.model", "model.name"):
        counting = files.of_project(key) if of_project else files.of_user(key)
        if (name := (values.first(counting, key, str) or "").strip()) != "":
            return name
    return None


def _project_model(files: Sources) -> tuple[str | None, tuple[str, ...]]:
    """Return the model's name that the project's file may give, and a line for one that does not count."""
    name = _model(files, of_project=True)
    if name is None or name.partition(":")[0].lower() not in LOCAL_PREFIXES:
        return name, ()
    path = files.of_project("model.name")[0].path
    problem = "scripts and servers of this machine are chosen by -m or your own settings alone"
    return None, (f"{path} names the model {name[:200]!r}, which is not used: {problem}",)


def _ignored(files: Sources, project: Path) -> tuple[str, ...]:
    """Return a line for each reason for which keys of the project's file do not count."""
    found = [(file.path, KEYS[key]) for file, key in files.ignored()]
    yours = [key.name for _, key in found if key.setter is Setter.USER]
    untrusted = [key.name for _, key in found if key.setter is Setter.TRUSTED and key.name != "mcpServers"]
    lines: list[str] = []
    if yours:
        lines.append(f"{found[0][0]}: not used, since only your own settings may say it: {', '.join(yours)}")
    if untrusted:
        lines.append(
            f"{found[0][0]}: not used, since the folder is not trusted: {', '.join(untrusted)}"
            f" (`isthmus trust {project}` changes that)"
        )
    return tuple(lines)


def _first_on(files: Sources, *keys: str) -> tuple[str, str] | None:
    """Return the first of some switches that is on, and where it stands."""
    for key in keys:
        if (source := values.is_set_anywhere(files.of(key), key)) is not None:
            return key, files.where(source)
    return None


def _yolo_refusal(files: Sources, guards: tuple[str, ...]) -> str | None:
    if (switch := _first_on(files, "security.disableYoloMode", "admin.secureModeEnabled")) is not None:
        return f"{switch[0]} in {switch[1]} forbids it"
    if guards:
        return f"Isthmus does not apply these guards, which count on somebody being asked: {'; '.join(guards)}"
    return None
