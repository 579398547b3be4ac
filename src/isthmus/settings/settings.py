"""Record of the values of the settings files. Pure.

A field names the key that gives it its type, its default and its value (:mod:`isthmus.settings.field_keys`); the row of
the key in :mod:`isthmus.settings.keys` says what it means.
"""

from dataclasses import field
from pathlib import Path

from isthmus.record import record
from isthmus.sandbox.settings import CommandSandbox
from isthmus.settings import keys
from isthmus.settings.field_keys import all_of, made_of, of
from isthmus.settings.in_force import SettingInForce
from isthmus.settings.model_setting import ModelSetting
from isthmus.settings.rules.rules import FolderRules, ReadOnlyTools


@record
class Settings:
    """Values of the settings files; None or empty if no file has the key."""

    model: str | None = made_of(keys.MODEL, keys.MODEL_NAME, default=None)
    """Model that the user's or the system's file names."""
    project_model: str | None = made_of(keys.MODEL, keys.MODEL_NAME, default=None)
    """Model that a trusted project's file names: one of the provider that is used anyway."""
    thinking_effort: str | None = of(keys.THINKING_EFFORT)
    patience: float | None = of(keys.PATIENCE)
    """Time in seconds."""
    turn_budget: int | None = of(keys.BUDGET_TURN)
    """Amount in picodollars, as the next two are."""
    session_budget: int | None = of(keys.BUDGET_SESSION)
    day_budget: int | None = of(keys.BUDGET_DAY)
    fallback_models: tuple[str, ...] = of(keys.FALLBACK_MODELS)
    """Models as they are written."""
    models: tuple[ModelSetting, ...] = of(keys.MODELS)
    """Facts about models."""
    uses_skills: bool = all_of(keys.SKILLS_ENABLED, keys.ADMIN_SKILLS_ENABLED)
    disabled_skills: tuple[str, ...] = of(keys.SKILLS_DISABLED)
    uses_subagents: bool = of(keys.ENABLE_AGENTS)
    disabled_subagents: tuple[str, ...] = of(keys.AGENTS_OVERRIDES)
    approval_mode: str | None = made_of(keys.DEFAULT_APPROVAL_MODE, default=None)
    """Approval mode of Gemini CLI's files, otherwise of Claude Code's."""
    allowed_tools: tuple[str, ...] = of(keys.TOOLS_ALLOWED)
    max_model_turns: int | None = of(keys.MAX_SESSION_TURNS)
    """Maximum number of model requests for one prompt; negative for no limit."""
    stops_loops: bool = of(keys.DISABLE_LOOP_DETECTION)
    compaction_share: float | None = of(keys.COMPRESSION_THRESHOLD)
    ide_enabled: bool | None = of(keys.IDE_ENABLED)
    has_vi_keys: bool = of(keys.VIM_MODE)
    context_files: tuple[str, ...] = of(keys.CONTEXT_FILE_NAME)
    included_folders: tuple[str, ...] = made_of(keys.INCLUDE_DIRECTORIES, default=())
    """Further folders of Gemini CLI's files and Claude Code's, as they are written."""
    journal_maximum_size: int | None = of(keys.JOURNAL_MAX_SIZE)
    """Maximum size of the journal in bytes; 0 means no maximum."""
    attention: str | None = of(keys.ATTENTION)
    theme: str | None = of(keys.THEME)
    parts: tuple[str, ...] = of(keys.PARTS)
    """Names of entry points."""
    language_servers: str | None = of(keys.LANGUAGE_SERVERS)
    token_store: str | None = of(keys.TOKEN_STORE)
    tool_search: str | None = of(keys.TOOL_SEARCH)
    tool_search_share: float | None = of(keys.TOOL_SEARCH_SHARE)
    read_only_tools: ReadOnlyTools = of(keys.READ_ONLY_TOOLS)
    allows_by_effect: bool = of(keys.ALLOW_BY_EFFECT)
    """Whether commands are tried in a copy before a user is asked about them."""
    keeps_approvals: bool = of(keys.PERMANENT_TOOL_APPROVAL)
    sandbox: CommandSandbox = of(keys.SANDBOX, keys.SANDBOX_ALLOWED_PATHS, keys.SANDBOX_NETWORK_ACCESS)
    rules: FolderRules = made_of(
        keys.TOOLS_EXCLUDE,
        keys.TOOLS_CORE,
        keys.TOOLS_CONFIRMATION_REQUIRED,
        keys.POLICY_PATHS,
        keys.ADMIN_POLICY_PATHS,
        keys.HOOKS,
        keys.HOOKS_ENABLED,
        keys.HOOKS_DISABLED,
        keys.DISABLE_YOLO_MODE,
        keys.DISABLE_ALWAYS_ALLOW,
        keys.SECURE_MODE,
        default=FolderRules(),
    )
    """Prohibitions of all files for this folder."""
    excluded_variables: tuple[str, ...] = of(keys.EXCLUDED_ENV_VARS)
    ignores_local_env: bool = of(keys.IGNORE_LOCAL_ENV)
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
