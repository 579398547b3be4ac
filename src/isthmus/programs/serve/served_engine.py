"""The engine of a server: of our own agent, or of the one that its options name, with what works beside it."""

import contextlib
from typing import TYPE_CHECKING

from isthmus.programs.serve.serving_pages import notifying, watching_journal
from isthmus.record import record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from isthmus.a2a.push.targets import PushRule
    from isthmus.engine import Engine
    from isthmus.engine.port.placement import Placement
    from isthmus.engine.port.workspaces import WorkspaceRule
    from isthmus.parts.repositories.served import ServedRepositories
    from isthmus.programs.agent.hosted_agent import HostedCommand
    from isthmus.programs.serve.serve_settings import ServeSettings
    from isthmus.programs.serve.workbench_view import AgentView
    from isthmus.programs.setup.setup import Setup
    from isthmus.runtime.telemetry import Telemetry
    from isthmus.web.pages import WorkbenchPages


@record
class ServedEngine:
    """Facts from which the engine of a server is built.

    ``push_rule`` also says which addresses of clients' MCP servers are allowed. ``runs_commands``: programs of the
    owner on this machine may bring MCP servers that are commands. ``pages`` and ``view`` show the tasks in browsers.
    """

    setup: "Setup"
    settings: "ServeSettings"
    rule: "WorkspaceRule"
    push_rule: "PushRule"
    placement: "Placement"
    repositories: "ServedRepositories"
    telemetry: "Telemetry"
    runs_commands: bool
    pages: "WorkbenchPages | None" = None
    view: "AgentView | None" = None

    @contextlib.asynccontextmanager
    async def open(self) -> "AsyncGenerator[Engine]":
        """Run the engine as long as the context lasts."""
        agent = self.settings.agent
        running = self._own() if agent is None else self._hosted(agent)
        async with (
            running as engine,
            self.repositories.pruned(engine.journal),
            notifying(self.pages, engine),
        ):
            if self.pages is None:
                yield engine
                return
            self.pages.agent_of = engine.for_user
            async with watching_journal(self.pages, engine, self.rule):
                yield engine

    def _hosted(self, agent: "HostedCommand") -> "AbstractAsyncContextManager[Engine]":
        from isthmus.programs.agent.hosted_agent import hosted_engine

        return hosted_engine(self.setup, agent, self.rule, placement=self.placement, telemetry=self.telemetry)

    def _own(self) -> "AbstractAsyncContextManager[Engine]":
        from isthmus.agent.approval.policy import ApprovalMode
        from isthmus.agent.approval.session_policy import SettingsRule
        from isthmus.programs.agent.local_agent import local_agent
        from isthmus.programs.agent.local_agent_options import (
            UNATTENDED_WAIT_SECONDS,
            ClientPrograms,
            LocalAgentOptions,
            McpUse,
        )

        settings = self.settings
        address_policy = None if settings.allow_client_mcp else self.push_rule.refusal
        programs = ClientPrograms.OF_OWNER_HERE if self.runs_commands else ClientPrograms.OF_NOBODY
        options = LocalAgentOptions(
            takes_over=True,
            mcp=McpUse(UNATTENDED_WAIT_SECONDS, address_policy, client_programs=programs),
            settings_rule=SettingsRule(ApprovalMode(settings.max_approval_mode)),
            names_settings_files=False,
            on_resources=self.view and self.view.begin,
            placement=self.placement,
            repositories=self.repositories or None,
            telemetry=self.telemetry,
        )
        return local_agent(self.setup, self.rule, options)
