"""Requests of the coding agent to its model: system prompt, conversation, and the tools that are offered."""

from dataclasses import replace
from pathlib import Path

from isthmus.agent.approval.session_policy import policy_for
from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.calls.withheld_tools import WithheldNotice
from isthmus.agent.context.windows import LearnedWindows
from isthmus.agent.memory.instructions import Instructions
from isthmus.agent.memory.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import Session
from isthmus.agent.system_prompt import PromptVariant, system_prompt
from isthmus.agent.tool_search.loading import ToolLoading
from isthmus.models.port.base import ChatModel, Effort, FreeForm, ModelRequest, ToolSpec, key_of
from isthmus.models.port.edit_tools import EditTools, edit_tools_of
from isthmus.runtime.brief_work import briefly
from isthmus.tools.port.base import Tool, full_parameters_of, is_free_form, is_search_tool
from isthmus.tools.port.tool_set import ToolScope


class ModelRequests:
    """Makes the requests of one agent."""

    def __init__(self, resources: AgentResources, options: AgentOptions, memory: Memory) -> None:
        self._resources = resources
        self._options = options
        self._memory = memory
        self._withheld = WithheldNotice()
        self.windows = LearnedWindows()
        """The context windows that the agent's sessions have learnt."""

    async def request(
        self, scope: ToolScope, session: Session, loading: ToolLoading, model: ChatModel, calls: CallRunner
    ) -> ModelRequest:
        """Return the next request to a model.

        Tools that are withheld from it are said in the log, and `calls` learns the names of those that it offers.
        """
        self._withheld.say(calls.withheld())
        settings, workspace = session.settings, Path(session.workspace)
        policy = policy_for(
            self._options.policy, settings, self._options.settings_rule, yolo_refusal=loading.tools.yolo_refusal
        )
        names_of_tools = frozenset(name for name, tool in loading.tools.tools.items() if calls.is_offered(tool))
        edits = edit_tools_of(model.name).among(names_of_tools)
        variant = PromptVariant(
            policy.mode, policy.may_ask, self._options.is_in_terminal, model.provider, names_of_tools, edits
        )
        names = (settings.context_files if settings is not None else ()) or self._options.context_files
        home = self._resources.home_of(session.user)

        def look() -> tuple[Instructions, bool]:
            # In one thread, for each request: handing work to a thread costs more than most looks.
            is_trusted = self._resources.is_project_trusted(session.user, workspace)
            return self._memory.read(workspace, home, names), is_trusted

        instructions, is_trusted = await briefly(look)
        of_parts = await self._resources.parts.instructions(scope)
        subagent, appended = session.subagent, self._options.appended_prompt
        system = system_prompt(
            workspace,
            variant,
            instructions.text,
            is_trusted=is_trusted,
            parts=of_parts,
            subagent=subagent.instructions if subagent is not None else None,
            folders=self._options.further_folders_of(workspace, session.user, session.added_folders),
        )
        tools = tuple(
            _spec(tool, edits)
            for tool in loading.sent(session.loaded_tools)
            if _suits(tool, model, edits) and calls.is_offered(tool)
        )
        calls.name_offered([spec.name for spec in tools])
        return ModelRequest(
            system=system + loading.note(session.loaded_tools) + (f"\n{appended}\n" if appended else ""),
            messages=tuple(session.messages),
            effort=Effort(session.effort) if session.effort is not None else self._options.effort,
            tools=tools,
            refused=session.refused_media.get(key_of(model), frozenset()),
        )


def _suits(tool: Tool, model: ChatModel, edits: EditTools) -> bool:
    """Return whether a tool is offered to a model, which edits files with ``edits``."""
    if is_search_tool(tool) and not model.capabilities.web_search:
        return False
    return tool.name not in edits.hidden


def _spec(tool: Tool, edits: EditTools) -> ToolSpec:
    spec = ToolSpec(tool.name, tool.description, tool.parameters, full_parameters_of(tool))
    if edits.is_free_form and tool.name in edits.names and is_free_form(tool):
        return replace(spec, free_form=FreeForm(tool.text_argument, tool.grammar))
    return spec
