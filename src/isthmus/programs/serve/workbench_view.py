"""The view of our own agent for the workbench: its MCP servers, tools, skills, subagents, and the settings in force."""

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from isthmus.agent.commands.builtin.mcp import for_others
from isthmus.mcp_host.config.folder_trust import TrustRule
from isthmus.programs.setup.terminal_settings import shown_settings
from isthmus.programs.setup.trust_question import TrustQuestion, open_question
from isthmus.session_status import US_DOLLARS
from isthmus.text.money import in_dollars
from isthmus.text.visible import visible, visible_line
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope
from isthmus.web.view import ChangedQuestionError, JsonObject, NotShownError, WorkbenchView

if TYPE_CHECKING:
    from isthmus.agent.resources import AgentResources
    from isthmus.engine.port.workspaces import WorkspaceRule
    from isthmus.models.port.costs import Price
    from isthmus.programs.setup.setup import Setup
    from isthmus.tools.port.servers import ServerStatus

MAXIMUM_TEXT = 2_000
"""Maximum number of characters of a text that a server wrote; the page shows its beginning."""
MAXIMUM_NAMES = 200
"""Maximum number of prompts or resources of a server."""


@dataclass(slots=True)
class AgentView(WorkbenchView):
    """The view of an agent. ``resources`` is None until it runs, and for agents of other authors."""

    setup: "Setup"
    rule: "WorkspaceRule"
    resources: "AgentResources | None" = None

    def begin(self, resources: "AgentResources") -> None:
        """Show these resources from now on."""
        self.resources = resources

    @override
    async def tools(self, user: str, workspace: str) -> JsonObject:
        if user and not (self.rule.roots and self.rule.allows(workspace)):
            raise NotShownError("you may not work in this folder")
        resources = self.resources
        if resources is None:
            return {"servers": None, "tools": [], "skills": [], "subagents": [], "problems": [], "manages": False}
        scope = ToolScope(Path(workspace), user=user)
        problems: list[str] = []
        servers: list[ServerStatus] = []
        tools: list[JsonObject] = []
        try:
            if resources.servers is not None:
                servers = list(await resources.servers.servers(scope))
            offered = await resources.tools.tools(scope)
            tools = [_named(tool.name, tool.description) for tool in offered.tools.values()]
        except ToolFailure as error:
            problems.append(str(error))
        personal = None if resources.personal is None else await resources.personal(scope)
        skills, subagents = (None, None) if personal is None else (personal.skills, personal.subagents)
        return {
            "servers": [_server(for_others(status) if user else status) for status in servers],
            "tools": tools,
            "skills": [_named(skill.name, skill.description) for skill in skills.skills] if skills else [],
            "subagents": [_named(each.name, each.description) for each in subagents.definitions] if subagents else [],
            "problems": [*problems, *(skills.problems if skills else ()), *(subagents.problems if subagents else ())],
            "manages": not user,
        }

    @override
    async def use(self, user: str) -> JsonObject:
        resources = self.resources
        if resources is None or resources.day_use is None:
            return {}
        today = await resources.day_use(user)
        cost = None if today.unpriced and not today.cost else in_dollars(today.cost)
        return {"tokens": today.tokens, "cost": cost, "currency": US_DOLLARS, "isPart": today.unpriced > 0}

    @override
    async def prices(self, user: str, models: Sequence[str]) -> JsonObject:
        if user:
            raise NotShownError("only the owner of the server sees which models its keys reach")
        resources = self.resources
        if resources is None or (price_of := resources.model_price) is None:
            return {}
        today = datetime.now(UTC).date()
        found = await asyncio.to_thread(lambda: {name: price_of(name, today) for name in models})
        return {name: None if price is None else _dollars(price) for name, price in found.items()}

    @override
    async def trust(self, user: str, workspace: str) -> JsonObject | None:
        question = await self._question(user, workspace)
        if question is None:
            return None
        return {
            "isUpdate": question.is_update,
            "omitted": question.omitted,
            "items": [
                {
                    "digest": each.item.digest,
                    "text": visible_line(each.line),
                    "kind": each.item.kind.value,
                    "startsProgram": each.starts_program,
                }
                for each in question.shown
            ],
            "choices": list(_choices(question)),
        }

    @override
    async def decide_trust(self, user: str, workspace: str, choice: str, digests: Collection[str]) -> None:
        question = await self._question(user, workspace)
        if question is None or {each.item.digest for each in question.shown} != set(digests):
            raise ChangedQuestionError("the folder's files have changed since they were shown; look at them again")
        answers = _choices(question)
        if choice not in answers:
            raise ChangedQuestionError(f"expected one of {', '.join(answers)}")
        await asyncio.to_thread(answers[choice])

    async def _question(self, user: str, workspace: str) -> TrustQuestion | None:
        if user or self.resources is None:
            raise NotShownError("only the user who runs this server decides about its folders")
        return await asyncio.to_thread(lambda: open_question(Path(workspace).resolve(), os.environ))

    @override
    async def settings(self, user: str) -> JsonObject:
        if user:
            raise NotShownError("only the user who runs this server sees its settings")
        shown = await asyncio.to_thread(shown_settings, self.setup)
        return {
            "files": [str(path) for path in shown.files],
            "settings": [{"key": item.key, "value": item.value, "path": str(item.path)} for item in shown.in_force],
            "notes": list(shown.notes),
        }


def _choices(question: TrustQuestion) -> Mapping[str, Callable[[], None]]:
    """Return what each answer to a question does; the functions block."""
    if question.is_update:
        return {
            "allow": partial(question.decide, is_agreed=True),
            "refuse": partial(question.decide, is_agreed=False),
        }
    return {
        "trust-folder": partial(question.state, TrustRule.FOLDER),
        "trust-parent": partial(question.state, TrustRule.PARENT),
        "distrust": partial(question.state, TrustRule.NOT),
    }


def _server(status: "ServerStatus") -> JsonObject:
    return {
        **_named(status.name, status.description),
        "state": str(status.state),
        "transport": status.transport,
        "problem": None if status.problem is None else visible(status.problem[:MAXIMUM_TEXT]),
        "summary": [*status.summary, *status.notes],
        "tools": [_named(tool.name, tool.description) for tool in status.tools],
        "prompts": list(status.prompts[:MAXIMUM_NAMES]),
        "resources": list(status.resources[:MAXIMUM_NAMES]),
        "isFile": status.is_file,
    }


def _dollars(price: "Price") -> JsonObject:
    return {"input": float(price.input), "output": float(price.output)}


def _named(name: str, description: str) -> JsonObject:
    return {"name": name, "description": description.strip()[:MAXIMUM_TEXT]}
