"""Builds an agent in this process (model, tools, journal, engine and editor) from a Setup."""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.agent.approval.policy import KEPT_APPROVALS_NAME
from isthmus.agent.approval.restricted_tools import RestrictedTools
from isthmus.agent.approval.session_policy import SettingsRule, check_agent_settings, check_settings
from isthmus.agent.coding_agent import CodingAgent
from isthmus.agent.memory.memory import own_file
from isthmus.agent.options import COMPACTION_SHARE, AgentOptions, environment_for_commands
from isthmus.agent.part import AgentParts
from isthmus.agent.personal_tools import PersonalTools
from isthmus.agent.resources import AgentResources
from isthmus.agent.tool_search.loading import SEARCH_SHARE, SearchMode, SearchOptions
from isthmus.app.approvals_file import ApprovalsFile
from isthmus.app.attached_files import AttachedFiles
from isthmus.app.background_part import BackgroundPart
from isthmus.app.carried_files import CarriedFiles, CarryingAgent
from isthmus.app.edit_diagnostics import EditDiagnosticsOfIde
from isthmus.app.editor_directory import EditorDirectory, EditorTimeouts
from isthmus.app.folder_rules import RulesOfFolders
from isthmus.app.hook_processes import HookProcesses
from isthmus.app.model_directory import ModelDirectory
from isthmus.app.part_packages import load_parts
from isthmus.app.personal_files import PersonalFilesOnDisk
from isthmus.app.running_engine import RunningEngine, questions_in_editors
from isthmus.app.session_editors import SessionEditors
from isthmus.app.session_environment import SessionEnvironment
from isthmus.app.setup import Setup, unused_settings
from isthmus.app.task_files import TaskFiles
from isthmus.app.trust_question import OnUnknown, settle_trust
from isthmus.checkpoints.store import CheckpointStore
from isthmus.client import InvalidRequest
from isthmus.encoding.codec import JsonObject
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.editor_surface import OnShown
from isthmus.engine.options import CheckSettings
from isthmus.engine.placement import EVERY_TASK, Placement
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.errors import IsthmusError
from isthmus.journal.opening import open_journal
from isthmus.mcp_host.catalogue.manifests import users_manifests
from isthmus.mcp_host.config.folder_trust import FolderTrust, file_trust
from isthmus.mcp_host.contents import HostContents
from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.mcp_host.workspace_servers import OnWait
from isthmus.models.base import ChatModel, Effort
from isthmus.models.choose import ModelChoice, open_model, open_patient_model
from isthmus.models.measured import measured
from isthmus.models.providers import secret_variables
from isthmus.record import record
from isthmus.settings import Settings, SettingsError
from isthmus.settings.trust.first_sight import with_records
from isthmus.telemetry import NO_TELEMETRY, Telemetry
from isthmus.tools.background_commands import BackgroundCommands
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.editor_text import EditorText, no_editor
from isthmus.tools.failure import ToolFailure
from isthmus.tools.tool_set import ToolScope

if TYPE_CHECKING:
    from isthmus.app.served_repositories import ServedRepositories
    from isthmus.network.checked_transport import AddressPolicy

AGENT = "Isthmus"
"""Name of the agent whose tasks the journal holds."""

UNATTENDED_WAIT_SECONDS = 20.0
"""Maximum time in seconds that a turn without a user at the terminal waits for MCP servers that are connecting."""


class ClientPrograms(StrEnum):
    """Clients whose own MCP servers may be commands."""

    OF_NOBODY = "of nobody"
    OF_OWNER_HERE = "of the owner here"
    """Clients of :meth:`isthmus.engine.Engine.for_owner_here`."""
    OF_THE_CLIENT = "of the client"
    """Client of the engine itself: a program of the user's that has started it."""


@record
class McpUse:
    """Options for the use of MCP servers.

    ``wait_seconds``: maximum time that a turn waits for servers that are still connecting. ``address_policy``:
    called with the host name and the address of a client's server; returns the reason to refuse it, or None.
    Without it every address is allowed. ``open_browser`` shows a login page to the user at this machine.
    ``on_unknown_trust`` is called at the start if the folder's files would start programs and the user has not
    decided about trust. ``on_wait`` receives the servers that a turn waits for, when that takes long.
    ``is_for_one_turn``: /mcp waits, too. ``client_programs``: whose servers may be commands. ``on_host`` receives the
    host once the agent runs.
    """

    wait_seconds: float = 5.0
    address_policy: "AddressPolicy | None" = None
    open_browser: Callable[[str], bool | None] | None = None
    on_unknown_trust: OnUnknown | None = None
    on_wait: OnWait | None = None
    is_for_one_turn: bool = False
    client_programs: ClientPrograms = ClientPrograms.OF_NOBODY
    on_host: Callable[[McpHost], None] | None = None


@contextlib.asynccontextmanager
async def local_agent(
    setup: Setup,
    workspaces: WorkspaceRule,
    *,
    takes_over: bool = False,
    is_idle: bool = False,
    mcp_use: McpUse | None = None,
    settings_rule: SettingsRule | None = None,
    on_shown: OnShown | None = None,
    on_resources: Callable[[AgentResources], None] | None = None,
    names_settings_files: bool = True,
    editor_timeouts: EditorTimeouts = EditorTimeouts(),
    editor_text: EditorText = no_editor,
    editor_directory: EditorDirectory | None = None,
    placement: Placement = EVERY_TASK,
    repositories: "ServedRepositories | None" = None,
    telemetry: Telemetry = NO_TELEMETRY,
) -> AsyncGenerator[Engine]:
    """Run an engine and close it at the end; running tasks are left to be continued at the next start.

    With ``takes_over`` it continues the tasks of ended processes, under its own approval mode; only a server does so.
    An idle engine opens no model, no editor and no MCP server. ``on_shown`` receives the questions that an editor
    shows, ``on_resources`` the agent's resources.
    ``editor_text`` returns what the user's editor has of a file. ``names_settings_files``: refusals name the
    settings files, whose paths clients of a server must not see. ``editor_directory`` finds the editors, if the setup
    uses them, and is closed at the end; None makes one. ``placement`` says which tasks run here, ``repositories`` are
    the repositories whose worktrees are workspaces, ``telemetry`` takes what happens.

    Raises:
        JournalError: the data folder cannot be used.
        PartError: a part that the settings name cannot be loaded.
    """
    use = mcp_use or McpUse()
    folder = Path(workspaces.default) if workspaces.default is not None else None
    options = _agent_options(setup, workspaces, settings_rule, may_include_folders=not takes_over)
    files = TaskFiles(setup.data_dir)
    added = () if is_idle else load_parts(setup.settings.parts, setup.data_dir)
    async with contextlib.AsyncExitStack() as stack:
        journal = await open_journal(files.journal, setup.journal, (AGENT,))
        running = RunningEngine(journal)

        checkpoints = CheckpointStore(files.checkpoints)
        stack.push_async_callback(checkpoints.aclose)

        model = _model_directory(setup, telemetry, is_watched=setup.policy.may_ask and not takes_over)
        stack.push_async_callback(model.aclose)

        local_editors = None
        if setup.use_ide and not is_idle:
            local_editors = editor_directory or EditorDirectory(setup.environment, editor_timeouts)
            stack.push_async_callback(local_editors.aclose)
        connect = local_editors.connect if local_editors is not None else None

        trusts = trust_of(local_editors, Path.home())
        if repositories is not None:
            trusts = repositories.trust(trusts, Path.home())
        rules = RulesOfFolders(setup.workspace, Path.home(), setup.environment, trusts, connect, names_settings_files)

        background = BackgroundCommands()
        mcp = _mcp_host(setup, use, trusts, local_editors, editor_text, background)
        stack.push_async_callback(mcp.aclose)

        editors = SessionEditors(
            local_editors, use.address_policy, running.settings_of, running.user_of, editor_timeouts
        )
        diagnostics = EditDiagnosticsOfIde(editors.client, editor_timeouts)
        parts = AgentParts((editors, diagnostics, BackgroundPart(background), *added))
        stack.push_async_callback(parts.aclose)

        personal = PersonalFilesOnDisk(Path.home(), setup.settings, trusts).of
        memory_file = own_file(Path.home() / ".gemini", setup.context_files)
        resources = AgentResources(
            open_model=model.open,
            tools=RestrictedTools(PersonalTools(mcp, personal, memory_file, running.child_tasks), rules.of),
            personal=personal,
            background=background,
            model_names=model.names,
            servers=mcp,
            contents=HostContents(mcp),
            parts=parts,
            environment=SessionEnvironment(options.environment),
            editors=editors,
            home=Path.home() / ".gemini",
            checkpoints=checkpoints,
            tasks=running.tasks_of,
            chats=journal.chats,
            trusts=trusts,
            has_commands=None if repositories is None else repositories.has_commands(trusts),
            yolo_refusal=partial(_yolo_refusal, rules),
            hook_programs=HookProcesses(),
            approvals=ApprovalsFile(setup.data_dir / KEPT_APPROVALS_NAME) if setup.settings.keeps_approvals else None,
        )
        if on_resources is not None:
            on_resources(resources)

        carried = CarriedFiles(files.outputs, journal.files) if journal.files is not None else None
        agent = CodingAgent(resources, options) if carried is None else CarryingAgent(resources, options, carried)
        engine = running.engine = Engine(
            agent if repositories is None else repositories.agent(agent, journal),
            journal,
            EngineOptions(
                workspaces,
                lambda: setup.model.name,
                takes_over=takes_over,
                maximum_size=setup.journal_maximum_size,
                delete_files=files.delete if repositories is None else repositories.deleting(files.delete),
                on_task_end=parts.task_ended,
                keep_files=AttachedFiles(files.outputs, model.media_rules, carried and carried.keep).keep,
                check_settings=_settings_check(setup, options.settings_rule, rules, mcp, model),
                brings_programs=use.client_programs is ClientPrograms.OF_THE_CLIENT,
                placement=placement,
                telemetry=telemetry,
            ),
        )
        stack.push_async_callback(engine.aclose)

        if not is_idle:
            model.begin()
            if folder is not None:
                mcp.begin(folder)
            await engine.start()
            if folder is not None:
                await _settle_trust(setup, folder, use, mcp, local_editors)
            await stack.enter_async_context(questions_in_editors(engine, editors, on_shown))
        if use.on_host is not None:
            use.on_host(mcp)
        yield engine


def _model_directory(setup: Setup, telemetry: Telemetry, *, is_watched: bool) -> ModelDirectory:
    """Return the models. Where nobody watches, they are waited for longer while they are busy."""
    opened = open_model if is_watched else open_patient_model

    def open_measured(choice: ModelChoice, environment: Mapping[str, str]) -> ChatModel:
        return measured(opened(choice, environment), telemetry)

    return ModelDirectory(setup.model, setup.environment, open_measured)


async def _yolo_refusal(rules: RulesOfFolders, folder: Path) -> str | None:
    with contextlib.suppress(SettingsError):  # the task itself will fail with this error
        return (await rules.of(folder)).yolo_refusal
    return None


def _agent_options(
    setup: Setup,
    workspaces: WorkspaceRule,
    settings_rule: SettingsRule | None,
    *,
    may_include_folders: bool,
) -> AgentOptions:
    return AgentOptions(
        output_folder=TaskFiles(setup.data_dir).outputs,
        environment=environment_for_commands(setup.environment, secret_variables()),
        policy=setup.policy,
        max_model_turns=setup.max_model_turns,
        stops_loops=setup.settings.stops_loops,
        effort=Effort(effort) if (effort := setup.settings.thinking_effort) is not None else None,
        fallback_models=setup.settings.fallback_models,
        settings_rule=settings_rule or SettingsRule(),
        compaction_share=setup.compaction_share or COMPACTION_SHARE,
        context_files=setup.context_files,
        appended_prompt=setup.appended_prompt,
        included_folders=setup.included_folders,
        may_include_folders=may_include_folders,
        roots=workspaces.roots,
        sandbox=setup.sandbox.level,
        tool_search=_tool_search(setup.settings),
        unused_settings=unused_settings(setup.settings),
        is_in_terminal=setup.is_in_terminal,
    )


async def _settle_trust(setup: Setup, folder: Path, use: McpUse, mcp: McpHost, editors: EditorDirectory | None) -> None:
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


def _mcp_host(
    setup: Setup,
    use: McpUse,
    trusts: FolderTrust,
    editors: EditorDirectory | None,
    editor_text: EditorText,
    background: BackgroundCommands,
) -> McpHost:
    options = HostOptions(
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
    tools = builtin_tools(shell_sandbox=setup.sandbox.commands, editor_text=editor_text, background=background)
    return McpHost(tools, options)


def _tool_search(settings: Settings) -> SearchOptions:
    return SearchOptions(SearchMode(settings.tool_search or "auto"), settings.tool_search_share or SEARCH_SHARE)


def _settings_check(
    setup: Setup, rule: SettingsRule, rules: RulesOfFolders, mcp: McpHost, models: ModelDirectory
) -> CheckSettings:
    """Return a check of AgentSettings that raises InvalidRequest before the task is created."""

    async def check(value: JsonObject, folder: Path, brings_programs: bool) -> None:
        check_settings(value, rule=rule, own=setup.policy.mode)
        settings = check_agent_settings(value)
        if settings.approval_mode or settings.allowed_tools:
            with contextlib.suppress(SettingsError):  # the task itself will fail with this error
                refusal = (await rules.of(folder)).yolo_refusal
                check_settings(value, rule=rule, own=setup.policy.mode, yolo_refusal=refusal)
        if settings.model and settings.model.strip():
            try:
                models.check(settings.model)
            except IsthmusError as error:
                raise InvalidRequest(f"model: {error}") from error
        try:
            mcp.check(folder, settings.mcp_servers, brings_programs=brings_programs)
        except ToolFailure as failure:
            raise InvalidRequest(f"mcp_servers: {failure}") from failure

    return check


def rule_for(setup: Setup) -> WorkspaceRule:
    """Return the rule that sessions work, and see sessions, only in the setup's workspace and below it."""
    return WorkspaceRule(default=setup.workspace, roots=(setup.workspace,))
