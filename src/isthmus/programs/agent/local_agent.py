"""Builds an agent in this process (model, tools, journal, engine and editor) from a Setup."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

from isthmus.agent.approval.policy import KEPT_APPROVALS_NAME
from isthmus.agent.approval.restricted_tools import RestrictedTools
from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.memory.memory import own_file
from isthmus.agent.memory.memory_part import MemoryPart
from isthmus.agent.part import AgentParts
from isthmus.agent.part_tools import ToolsOfParts
from isthmus.agent.personal_part import PersonalPart
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.spending import BudgetLimits
from isthmus.checkpoints.store import CheckpointStore
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.engine.users.day_use import DayBudget
from isthmus.journal.opening import open_journal
from isthmus.journal.port.day_limits import DayLimits
from isthmus.mcp_host.contents import HostContents
from isthmus.parts.approvals_file import ApprovalsFile
from isthmus.parts.background import BackgroundPart
from isthmus.parts.editor.diagnostics import EditDiagnosticsOfIde, reports_diagnostics
from isthmus.parts.editor.directory import EditorDirectory
from isthmus.parts.editor.session_editors import SessionEditors
from isthmus.parts.files.attached import AttachedFiles
from isthmus.parts.files.carried import CarriedFiles, CarryingAgent
from isthmus.parts.files.task_files import TaskFiles
from isthmus.parts.hook_processes import HookProcesses
from isthmus.parts.language_servers import LanguageServersPart, LanguageServerUse
from isthmus.parts.packages import load_parts
from isthmus.parts.personal_files import PersonalFilesOnDisk
from isthmus.parts.running_engine import RunningEngine, questions_in_editors
from isthmus.parts.servers import ServersPart
from isthmus.parts.session_environment import SessionEnvironment
from isthmus.programs.agent.building import (
    agent_options,
    mcp_host,
    model_directory,
    settings_check,
    settle_folder,
    trust_of,
    yolo_refusal,
)
from isthmus.programs.agent.local_agent_options import ClientPrograms, LocalAgentOptions
from isthmus.programs.setup.folder_rules import RulesOfFolders
from isthmus.programs.setup.setup import Setup
from isthmus.tools.shell.background_commands import BackgroundCommands

AGENT = "Isthmus"
"""Name of the agent whose tasks the journal holds."""


@contextlib.asynccontextmanager
async def local_agent(setup: Setup, workspaces: WorkspaceRule, options: LocalAgentOptions) -> AsyncGenerator[Engine]:
    """Run an engine and close it at the end; running tasks are left to be continued at the next start.

    Raises:
        JournalError: the data folder cannot be used.
        PartError: a part that the settings name cannot be loaded.
    """
    async with contextlib.AsyncExitStack() as stack:
        journal = await open_journal(TaskFiles(setup.data_dir).journal, setup.journal, (AGENT,))
        until_engine = await stack.enter_async_context(contextlib.AsyncExitStack())
        until_engine.push_async_callback(journal.aclose)
        building = _Building(setup, workspaces, options, RunningEngine(journal), stack)
        parts = await building.parts()
        resources = building.resources(parts)
        if options.on_resources is not None:
            options.on_resources(resources)
        engine = building.engine(resources, parts)
        until_engine.pop_all()  # from now on the engine closes the journal
        if not options.is_idle:
            await building.begin(engine)
        if options.mcp.on_host is not None:
            options.mcp.on_host(building.mcp)
        yield engine


class _Building:
    """The building of an agent: what several of its parts need. ``stack`` gets the end of each.

    ``mcp`` are the MCP servers, with the tools of the agent itself.
    """

    def __init__(
        self,
        setup: Setup,
        workspaces: WorkspaceRule,
        options: LocalAgentOptions,
        running: RunningEngine,
        stack: contextlib.AsyncExitStack,
    ) -> None:
        self._setup = setup
        self._workspaces = workspaces
        self._options = options
        self._running = running
        self._stack = stack
        self._files = TaskFiles(setup.data_dir)
        self._home = Path.home() / ".gemini"
        self._agent = agent_options(setup, workspaces, options)

        self._checkpoints = CheckpointStore(self._files.checkpoints)
        stack.push_async_callback(self._checkpoints.aclose)

        is_watched = setup.policy.may_ask and not options.takes_over
        self._model = model_directory(setup, options.telemetry, is_watched=is_watched)
        stack.push_async_callback(self._model.aclose)

        self._editors: EditorDirectory | None = None
        if setup.use_ide and not options.is_idle:
            self._editors = options.editor_directory or EditorDirectory(setup.environment, options.editor_timeouts)
            stack.push_async_callback(self._editors.aclose)

        self._trusts = trust_of(self._editors, Path.home())
        if options.repositories is not None:
            self._trusts = options.repositories.trust(self._trusts, Path.home())
        self._personal = PersonalFilesOnDisk(Path.home(), setup.settings, self._trusts).of
        connect = self._editors.connect if self._editors is not None else None
        self._rules = RulesOfFolders(
            *(setup.workspace, Path.home(), setup.environment, self._trusts, connect, options.names_settings_files)
        )
        self._session_editors = SessionEditors(
            self._editors,
            options.mcp.address_policy,
            lambda task_id: running.engine.settings_of(task_id),
            running.user_of,
            options.editor_timeouts,
        )

        self._background = BackgroundCommands()
        self.mcp = mcp_host(setup, options, self._trusts, self._editors, self._background)
        stack.push_async_callback(self.mcp.aclose)

    async def parts(self) -> AgentParts:
        """Return what accompanies the agent. Their order is also the order of their tools, notes and instructions."""
        added = () if self._options.is_idle else await load_parts(self._setup.settings.parts, self._setup.data_dir)
        memory_file = own_file(self._home, self._setup.context_files)
        parts = AgentParts(
            (
                PersonalPart(self._personal, self._running.child_tasks),
                MemoryPart(memory_file),
                self._session_editors,
                EditDiagnosticsOfIde(self._session_editors.client, self._options.editor_timeouts),
                LanguageServersPart(self._language_servers()),
                BackgroundPart(self._background),
                ServersPart(HostContents(self.mcp)),
                *added,
            )
        )
        self._stack.push_async_callback(parts.aclose)
        return parts

    def _language_servers(self) -> LanguageServerUse:
        setup, options = self._setup, self._options
        # A server reads the project outside of the sandbox, where what a confined command wrote could be run.
        is_off = options.is_idle or options.takes_over or setup.sandbox.commands is not None
        programs = "none" if is_off else setup.settings.language_servers or "installed"
        has_editor = partial(reports_diagnostics, self._session_editors.client)
        return LanguageServerUse(programs, self._trusts, setup.environment, has_editor)

    def resources(self, parts: AgentParts) -> AgentResources:
        """Return what the agent uses."""
        setup, running, trusts, mcp = self._setup, self._running, self._trusts, self.mcp
        repositories = self._options.repositories
        return AgentResources(
            open_model=self._model.open,
            tools=RestrictedTools(ToolsOfParts(mcp, parts), self._rules.of),
            personal=self._personal,
            background=self._background.of,
            model_names=self._model.names,
            model_price=self._model.price,
            servers=mcp,
            contents=HostContents(mcp),
            parts=parts,
            environment=SessionEnvironment(self._agent.environment),
            editors=self._session_editors,
            home=self._home,
            checkpoints=self._checkpoints,
            tasks=running.tasks_of,
            chats=running.journal.chats,
            day_use=running.day_of,
            trusts=trusts,
            has_commands=None if repositories is None else repositories.has_commands(trusts),
            yolo_refusal=partial(yolo_refusal, self._rules),
            hook_programs=HookProcesses(),
            approvals=ApprovalsFile(setup.data_dir / KEPT_APPROVALS_NAME) if setup.settings.keeps_approvals else None,
        )

    def engine(self, resources: AgentResources, parts: AgentParts) -> Engine:
        """Return the engine, which runs the agent."""
        setup, options, journal, files = self._setup, self._options, self._running.journal, self._files
        repositories = options.repositories
        carried = CarriedFiles(files.outputs, journal.files) if journal.files is not None else None
        agent = (
            CodingAgent(resources, self._agent) if carried is None else CarryingAgent(resources, self._agent, carried)
        )
        engine = self._running.engine = Engine(
            agent if repositories is None else repositories.agent(agent, journal),
            journal,
            EngineOptions(
                self._workspaces,
                lambda: setup.model.name,
                takes_over=options.takes_over,
                maximum_size=setup.journal_maximum_size,
                delete_files=files.delete if repositories is None else repositories.deleting(files.delete),
                copy_files=files.copy,
                on_task_end=parts.task_ended,
                keep_files=AttachedFiles(files.outputs, self._model.media_rules, carried and carried.keep).keep,
                check_settings=settings_check(setup, self._agent.settings_rule, self._rules, self.mcp, self._model),
                brings_programs=options.mcp.client_programs is ClientPrograms.OF_THE_CLIENT,
                placement=options.placement,
                telemetry=options.telemetry,
            ),
        )
        self._stack.push_async_callback(engine.aclose)
        settings = setup.settings
        engine.spending.limits = BudgetLimits(settings.turn_budget, settings.session_budget, setup.run_budget)
        if (cost := settings.day_budget) is not None:
            own, others = DayLimits(cost=cost), DayLimits()
            budget = DayBudget(engine.day_use, lambda user: others if user else own, "isthmus.budget.day")
            engine.spending.budgets.append(budget)
        return engine

    async def begin(self, engine: Engine) -> None:
        """Connect to models and MCP servers, continue the tasks, and show questions in editors."""
        folder = Path(self._workspaces.default) if self._workspaces.default is not None else None
        self._model.begin()
        if folder is not None:
            self.mcp.begin(folder)
        await engine.start()
        if folder is not None:
            await settle_folder(self._setup, folder, self._options.mcp, self.mcp, self._editors)
        await self._stack.enter_async_context(
            questions_in_editors(engine, self._session_editors, self._options.on_shown)
        )


def rule_for(setup: Setup) -> WorkspaceRule:
    """Return the rule that sessions work, and see sessions, only in the setup's workspace and below it."""
    return WorkspaceRule(default=setup.workspace, roots=(setup.workspace,))
