"""The setup of an agent, which results from options of the command line, settings and the environment."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.errors import IsthmusError
from isthmus.programs.setup.sandbox_choice import SandboxSetup, decide_sandbox
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.agent.approval.policy import Policy
    from isthmus.mcp_host.config.run_servers import RunServers
    from isthmus.models.choose import ModelChoice
    from isthmus.settings import Settings

APPROVAL_MODES = ("default", "auto_edit", "plan", "yolo")
DEFAULT_MODEL_TURNS = 250
"""Maximum number of model requests for one prompt. Long honest work takes 100 to 250; loops are stopped earlier."""


class BadInputError(click.UsageError):
    """Arguments or settings are invalid; the command exits with status 42."""


@record
class GivenOptions:
    """Options as given on the command line; None or empty if not given."""

    model: str | None = None
    approval_mode: str | None = None
    yolo: bool = False
    allowed_tools: tuple[str, ...] = ()
    max_turns: int | None = None
    patience: float | None = None
    max_budget_usd: int | None = None
    workspace: Path | None = None
    data_dir: Path | None = None
    ide: bool | None = None
    debug: bool = False
    sandbox: str | None = None
    strict_mcp: bool = False
    append_system_prompt: str | None = None
    include_directories: tuple[str, ...] = ()
    mcp_config: tuple[str, ...] = ()
    strict_mcp_config: bool = False
    allowed_mcp_server_names: tuple[str, ...] = ()


@record
class Setup:
    """Configuration of an agent, decided from options, settings and environment."""

    workspace: Path
    data_dir: Path
    model: "ModelChoice"
    policy: "Policy"
    max_model_turns: int | None
    use_ide: bool
    environment: Mapping[str, str]
    sandbox: "SandboxSetup"
    settings: "Settings"
    is_debugging: bool
    run_servers: "RunServers"
    """MCP servers that the command line names."""
    is_mcp_strict: bool = False
    """Whether a turn needs every MCP server that is not switched off."""
    appended_prompt: str = ""
    """The user's own instructions at the end of the system prompt."""
    included_folders: tuple[Path, ...] = ()
    """Further folders in which the agent of the local user works; absolute."""
    context_files: tuple[str, ...] = ()
    """Names of the files that instruct the agent; empty for the usual ones."""
    compaction_share: float | None = None
    """Share of the model's context window that a conversation may take before it is compacted; None: the default."""
    journal_maximum_size: int | None = None
    """Maximum size of the journal in bytes; None for no maximum."""
    is_in_terminal: bool = False
    """Whether the user reads the answers in this terminal."""
    journal: str = ""
    """URL of the database that holds the tasks; empty for a file in the data folder."""
    patience: float | None = None
    """Maximum time in seconds that a request to the model waits; None: the default."""
    run_budget: int | None = None
    """Picodollars that models may cost in this run of the program; None for no limit."""


def decide(options: GivenOptions, *, may_ask: bool) -> Setup:
    """Combine options, settings and environment.

    Raises:
        BadInputError: a value or a settings file is invalid; nothing was started.
        SandboxRequiredError: the sandbox is required but does not work.
    """
    from isthmus.mcp_host.config.run_servers import read_run_servers
    from isthmus.models.choose import check_name, choose
    from isthmus.models.port.base import ModelError
    from isthmus.programs.setup.settings_trust import trust_for_settings
    from isthmus.settings import load_settings
    from isthmus.settings.env_files import load_environment

    workspace, home = _workspace(options), Path.home()
    try:
        trusts = trust_for_settings(workspace, home, os.environ, ide=options.ide)
        settings = load_settings(workspace, home, os.environ, is_trusted=trusts(workspace))
        local = None if settings.ignores_local_env else workspace
        loaded = load_environment(os.environ, home, local, trusts, settings.excluded_variables)
        settings = replace(settings, ignored=(*settings.ignored, *loaded.problems))
        environment = dict(loaded.variables)
        run_servers = read_run_servers(
            options.mcp_config, options.allowed_mcp_server_names, is_alone=options.strict_mcp_config
        )
        for name in settings.fallback_models:
            with suppress(ModelError):  # a missing key is said when the model is needed
                check_name(name, environment)
        model = choose(options.model, settings.model, environment, project_model=settings.project_model)
    except IsthmusError as error:
        raise BadInputError(str(error)) from error
    data_dir = data_directory(options)
    policy = _policy(options, settings, may_ask=may_ask)
    sandbox = decide_sandbox(
        options.sandbox,
        settings.sandbox,
        environment,
        home=home,
        data_dir=data_dir,
        allows_by_effect=settings.allows_by_effect,
    )
    return Setup(
        workspace=workspace,
        data_dir=data_dir,
        model=model,
        policy=replace(
            policy,
            is_confined=sandbox.commands is not None,
            has_network=sandbox.commands is None or sandbox.commands.policy.has_network,
        ),
        max_model_turns=_turn_limit(options.max_turns or settings.max_model_turns or DEFAULT_MODEL_TURNS),
        use_ide=options.ide if options.ide is not None else settings.ide_enabled is not False,
        environment=environment,
        sandbox=sandbox,
        settings=settings,
        is_debugging=options.debug,
        run_servers=run_servers,
        is_mcp_strict=options.strict_mcp,
        appended_prompt=(options.append_system_prompt or "").strip(),
        included_folders=_included(options, settings, workspace),
        context_files=settings.context_files,
        compaction_share=settings.compaction_share,
        journal_maximum_size=_maximum(settings),
        run_budget=options.max_budget_usd,
        patience=options.patience if options.patience is not None else settings.patience,
    )


def _workspace(options: GivenOptions) -> Path:
    """Return the folder to work in; raise BadInputError for one that is missing, or that clients cannot be told of."""
    workspace = (options.workspace or Path.cwd()).resolve()
    if not workspace.is_dir():
        raise BadInputError(f"--workspace {options.workspace} is not a folder")
    try:
        str(workspace).encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(workspace).decode("utf-8", "backslashreplace")
        raise BadInputError(
            f"the path of the folder {shown} is not UTF-8, so no client could be told of it. Rename the folder."
        ) from error
    return workspace


def _included(options: GivenOptions, settings: "Settings", workspace: Path) -> tuple[Path, ...]:
    """Return the further folders that options and settings name.

    Raises:
        BadInputError: an option names no folder. What is missing of the settings' is left out.
    """
    given = [part.strip() for option in options.include_directories for part in option.split(",") if part.strip()]
    for name in given:
        if not _folder(workspace, name).is_dir():
            raise BadInputError(f"--include-directories: {name} is not a folder")
    named = [_folder(workspace, name) for name in (*given, *settings.included_folders)]
    return tuple(dict.fromkeys(folder for folder in named if folder.is_dir()))


def _folder(workspace: Path, name: str) -> Path:
    with suppress(RuntimeError):  # there is no such user
        return (workspace / Path(name).expanduser()).resolve()
    return workspace / name


def _turn_limit(turns: int) -> int | None:
    return turns if turns > 0 else None


def settings_notices(settings: "Settings") -> tuple[str, ...]:
    """Return the notices about the settings that are shown before anything runs, one line each."""
    guards = f"not applied by Isthmus, so the approval mode yolo is refused: {'; '.join(settings.guards)}"
    return (*settings.ignored, *((guards,) if settings.guards else ()))


def notices(setup: Setup) -> tuple[str, ...]:
    """Return the notices about settings, keys and models that are shown before anything runs, one line each."""
    from datetime import UTC, datetime

    from isthmus.models.endpoint.endpoint import short_keys
    from isthmus.parts.model_notices import model_notices

    today = datetime.now(UTC).date()
    of_models = model_notices(setup.model, setup.settings, setup.environment, today)
    return (*settings_notices(setup.settings), *short_keys(setup.environment), *of_models)


def unused_settings(settings: "Settings") -> tuple[str, ...]:
    """Return a line that names the settings which are not used; empty if all are used."""
    keys = ", ".join((*settings.unused, *settings.guards))
    return (f"Settings that Isthmus does not use: {keys}",) if keys else ()


def data_directory(options: GivenOptions) -> Path:
    """Return the folder where tasks are kept."""
    if options.data_dir is not None:
        return options.data_dir.resolve()
    from isthmus.files.locations import data_directory as platform_data_directory

    return platform_data_directory()


def _policy(options: GivenOptions, settings: "Settings", *, may_ask: bool) -> "Policy":
    from isthmus.agent.approval.grants import grants_from_settings
    from isthmus.agent.approval.policy import ApprovalMode, Policy
    from isthmus.agent.approval.session_policy import wrong_entry

    if options.yolo and options.approval_mode not in (None, ApprovalMode.YOLO):
        raise BadInputError(f"--yolo and --approval-mode {options.approval_mode} contradict each other; give one")
    given = ApprovalMode.YOLO if options.yolo else options.approval_mode
    mode = given or settings.approval_mode or ApprovalMode.DEFAULT
    if mode not in tuple(ApprovalMode):
        expected = ", ".join(APPROVAL_MODES)
        raise BadInputError(f"general.defaultApprovalMode is {mode!r} in the settings; expected one of {expected}")
    if mode == ApprovalMode.YOLO and settings.rules.yolo_refusal is not None:
        raise BadInputError(f"the approval mode yolo is refused: {settings.rules.yolo_refusal}. Choose another one.")
    entries = [part for option in options.allowed_tools for part in _split(option)]
    for entry in entries:
        if (wrong := wrong_entry(entry)) is not None:
            raise BadInputError(f"--allowed-tools: {wrong}")
    return Policy(ApprovalMode(mode), grants_from_settings([*entries, *settings.allowed_tools]), may_ask)


def _maximum(settings: "Settings") -> int | None:
    from isthmus.engine.port.retention import MAXIMUM_SIZE

    size = settings.journal_maximum_size
    return MAXIMUM_SIZE if size is None else size or None


def _split(option: str) -> list[str]:
    """Split at commas outside brackets: ``a,b(c, d)`` gives ``a`` and ``b(c, d)``."""
    parts, depth = [""], 0
    for character in option:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def model_line(setup: Setup) -> str:
    """Return a line that names the model and the reason for its choice."""
    name = "the built-in demonstration" if setup.model.provider == "demo" else setup.model.name
    return f"Model: {name} ({setup.model.reason})"
