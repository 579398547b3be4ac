"""Pieces of which an agent in this process is built from a Setup: its options, models, servers and checks."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from isthmus.agent.approval.session_policy import SettingsRule, check_agent_settings, check_settings
from isthmus.agent.options import COMPACTION_SHARE, AgentOptions, environment_for_commands
from isthmus.agent.tool_search.loading import SEARCH_SHARE, SearchMode, SearchOptions
from isthmus.client import InvalidRequest
from isthmus.encoding.codec import JsonObject
from isthmus.engine.port.options import CheckSettings
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.errors import IsthmusError
from isthmus.mcp_host.catalogue.manifests import users_manifests
from isthmus.mcp_host.config.folder_trust import FolderTrust, file_trust
from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.models.choose import ModelChoice, open_agents_model
from isthmus.models.endpoint.providers import secret_variables
from isthmus.models.measured import measured
from isthmus.models.port.base import ChatModel, Effort
from isthmus.parts.editor.directory import EditorDirectory
from isthmus.parts.files.task_files import TaskFiles
from isthmus.parts.model_directory import ModelDirectory
from isthmus.parts.model_notices import model_overrides
from isthmus.programs.agent.local_agent_options import ClientPrograms, LocalAgentOptions, McpUse
from isthmus.programs.setup.folder_rules import RulesOfFolders
from isthmus.programs.setup.setup import Setup, unused_settings
from isthmus.programs.setup.trust_question import settle_trust
from isthmus.runtime.telemetry import Telemetry
from isthmus.settings import Settings, SettingsError
from isthmus.settings.trust.first_sight import with_records
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope
from isthmus.tools.shell.background_commands import BackgroundCommands
from isthmus.tools.shell.trials.command_trial import TRIALS_FOLDER, CommandTrials


def model_directory(setup: Setup, telemetry: Telemetry, *, is_watched: bool) -> ModelDirectory:
    """Return the models. Where nobody watches, they are waited for longer while they are busy."""
    overrides = model_overrides(setup.settings)

    def open_measured(choice: ModelChoice, environment: Mapping[str, str]) -> ChatModel:
        opened = open_agents_model(
            choice, environment, overrides=overrides, patience=setup.patience, is_watched=is_watched
        )
        return measured(opened, telemetry)

    return ModelDirectory(setup.model, setup.environment, open_measured, overrides)


async def yolo_refusal(rules: RulesOfFolders, folder: Path) -> str | None:
    """Return why the settings of a folder refuse the approval mode ``yolo``; None if they allow it."""
    with contextlib.suppress(SettingsError):  # the task itself will fail with this error
        return (await rules.of(folder)).yolo_refusal
    return None


def agent_options(setup: Setup, workspaces: WorkspaceRule, options: LocalAgentOptions) -> AgentOptions:
    """Return the options of the coding agent."""
    return AgentOptions(
        output_folder=TaskFiles(setup.data_dir).outputs,
        environment=environment_for_commands(setup.environment, secret_variables()),
        policy=setup.policy,
        max_model_turns=setup.max_model_turns,
        stops_loops=setup.settings.stops_loops,
        effort=Effort(effort) if (effort := setup.settings.thinking_effort) is not None else None,
        fallback_models=setup.settings.fallback_models,
        settings_rule=options.settings_rule,
        compaction_share=setup.compaction_share or COMPACTION_SHARE,
        context_files=setup.context_files,
        appended_prompt=setup.appended_prompt,
        included_folders=setup.included_folders,
        may_include_folders=not options.takes_over,
        roots=workspaces.roots,
        sandbox=setup.sandbox.level,
        tool_search=_tool_search(setup.settings),
        unused_settings=unused_settings(setup.settings),
        is_in_terminal=setup.is_in_terminal,
        tries_commands=setup.sandbox.trials is not None,
    )


async def settle_folder(setup: Setup, folder: Path, use: McpUse, mcp: McpHost, editors: EditorDirectory | None) -> None:
    """Have the user decide whether the folder is trusted if they have not, then connect to its servers."""
    if use.on_unknown_trust is not None and await settle_trust(
        use.on_unknown_trust, folder, setup.environment, editors
    ):
        await mcp.servers(ToolScope(folder))


def trust_of(editors: EditorDirectory | None, home: Path) -> FolderTrust:
    """Return a check whether the local user trusts a folder, by the user's editor, otherwise by the user's file."""
    by_file = file_trust(home)

    def trusts(folder: Path) -> bool:
        by_editor = editors.trust(folder) if editors is not None else None
        return by_file(folder) if by_editor is None else by_editor

    return with_records(trusts, home)


def mcp_host(
    setup: Setup,
    options: LocalAgentOptions,
    trusts: FolderTrust,
    editors: EditorDirectory | None,
    background: BackgroundCommands,
) -> McpHost:
    """Return the MCP servers of the settings and of clients, with the tools of the agent itself."""
    use = options.mcp
    host_options = HostOptions(
        Path.home(),
        setup.environment,
        use.wait_seconds,
        use.address_policy,
        trusts,
        editors.connect if editors is not None else None,
        use.open_browser,
        cache=users_manifests(),
        sandbox=setup.sandbox.finder,
        reads_freely=setup.settings.read_only_tools.are_free,
        on_wait=use.on_wait,
        is_for_one_turn=use.is_for_one_turn,
        is_strict=setup.is_mcp_strict,
        run_servers=setup.run_servers,
        allows_client_programs=use.client_programs is not ClientPrograms.OF_NOBODY,
    )
    tools = builtin_tools(
        shell_sandbox=setup.sandbox.commands,
        editor_text=options.editor_text,
        background=background,
        trials=_trials(setup),
    )
    return McpHost(tools, host_options)


def _trials(setup: Setup) -> CommandTrials | None:
    """Return what tries commands in copies; None where the user's settings do not want it, or it is not possible."""
    found = setup.sandbox.trials
    if found is None:
        return None
    return CommandTrials(found, setup.data_dir / TRIALS_FOLDER, context_files=setup.context_files)


def _tool_search(settings: Settings) -> SearchOptions:
    return SearchOptions(SearchMode(settings.tool_search or "auto"), settings.tool_search_share or SEARCH_SHARE)


def settings_check(
    setup: Setup, rule: SettingsRule, rules: RulesOfFolders, mcp: McpHost, models: ModelDirectory
) -> CheckSettings:
    """Return a check of AgentSettings that raises InvalidRequest before the task is created."""

    async def check(value: JsonObject, folder: Path, brings_programs: bool) -> None:
        check_settings(value, rule=rule, own=setup.policy.mode)
        settings = check_agent_settings(value)
        if settings.approval_mode or settings.allowed_tools:
            refusal = await yolo_refusal(rules, folder)
            check_settings(value, rule=rule, own=setup.policy.mode, yolo_refusal=refusal)
        if settings.model and settings.model.strip():
            try:
                models.check(settings.model, settings.effort)
            except IsthmusError as error:
                raise InvalidRequest(f"model: {error}") from error
        try:
            mcp.check(folder, settings.mcp_servers, brings_programs=brings_programs)
        except ToolFailure as failure:
            raise InvalidRequest(f"mcp_servers: {failure}") from failure

    return check
