"""Requests of the coding agent to its model: system prompt, conversation, and the tools that are offered.

The system prompt and the tools of a session stay as they are (:mod:`isthmus.agent.session.prompt_prefix`).
"""

from dataclasses import replace
from pathlib import Path

from isthmus.agent.approval.session_policy import policy_for
from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.calls.withheld_tools import WithheldNotice
from isthmus.agent.coding.prompt_changes import prompt_change
from isthmus.agent.context.windows import LearnedWindows
from isthmus.agent.memory.instructions import Instructions
from isthmus.agent.memory.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.next_request import next_request
from isthmus.agent.session.prompt_prefix import KnownSpecs
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.agent.system_prompt import PromptVariant, prompt_sections
from isthmus.agent.tool_search.loading import ToolLoading
from isthmus.internal_events import PromptBegun, PromptSection
from isthmus.models.port.base import ChatModel, FreeForm, ModelRequest, ToolSpec, key_of
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
        self._known_specs = KnownSpecs()
        self.windows = LearnedWindows()
        """The context windows that the agent's sessions have learnt."""

    def is_begun(self, session: Session, model: ChatModel) -> bool:
        """Return whether the beginning of the session's requests to a model is fixed; a compaction makes it anew."""
        return key_of(model) in session.prefixes

    async def request(
        self, turn: AgentTurn, scope: ToolScope, loading: ToolLoading, model: ChatModel, calls: CallRunner
    ) -> ModelRequest:
        """Return the next request to a model, which begins as the one before.

        What its beginning would say otherwise now is told to the model behind the conversation. Tools that are withheld
        from it are said in the log, and `calls` learns the names of those that it offers.
        """
        session = turn.session
        self._withheld.say(calls.withheld())
        policy = policy_for(
            self._options.policy,
            session.settings,
            self._options.settings_rule,
            yolo_refusal=loading.tools.yolo_refusal,
        )
        names_of_tools = frozenset(name for name, tool in loading.tools.tools.items() if calls.is_offered(tool))
        edits = edit_tools_of(model.name).among(names_of_tools)
        variant = PromptVariant(
            policy.mode, policy.may_ask, self._options.is_in_terminal, model.provider, names_of_tools, edits
        )
        sections = await self._sections(scope, session, loading, variant)
        key = key_of(model)
        is_begun = self.is_begun(session, model)
        # What was searched for is in the conversation until the beginning is made anew.
        loaded = session.choices.loaded_tools if not is_begun or session.choices.loaded_tools is None else ()
        tools = [
            _spec(tool, edits) for tool in loading.sent(loaded) if _suits(tool, model, edits) and calls.is_offered(tool)
        ]
        if not is_begun:
            await turn.emit(PromptBegun(key, sections, self._known_specs.as_json(tools)))
        if (change := prompt_change(session.prefixes[key], sections, tools, names_of_tools)) is not None:
            await turn.emit(change)
        prefix = session.prefixes[key]
        calls.name_offered(list(prefix.known_tools))
        return next_request(session, model, self._options.effort, may_ask=policy.may_ask)

    async def _sections(
        self, scope: ToolScope, session: Session, loading: ToolLoading, variant: PromptVariant
    ) -> tuple[PromptSection, ...]:
        """Return the system prompt as it would be now."""
        settings, workspace = session.settings, Path(session.workspace)
        names = (settings.context_files if settings is not None else ()) or self._options.context_files
        home = self._resources.home_of(session.user)

        def look() -> tuple[Instructions, bool]:
            # In one thread, for each request: handing work to a thread costs more than most looks.
            is_trusted = self._resources.is_project_trusted(session.user, workspace)
            return self._memory.read(workspace, home, names), is_trusted

        instructions, is_trusted = await briefly(look)
        return prompt_sections(
            workspace,
            variant,
            instructions.parts,
            is_trusted=is_trusted,
            parts=await self._resources.parts.instructions(scope),
            servers=loading.notes(session.choices.loaded_tools),
            subagent=session.subagent.instructions if session.subagent is not None else None,
            folders=self._options.further_folders_of(workspace, session.user, session.choices.added_folders),
            appended=self._options.appended_prompt,
        )


def _suits(tool: Tool, model: ChatModel, edits: EditTools) -> bool:
    """Return whether a tool is offered to a model, which edits files with ``edits``."""
    if is_search_tool(tool) and not model.capabilities.web_search:
        return False
    return tool.name not in edits.hidden


def _spec(tool: Tool, edits: EditTools) -> ToolSpec:
    full = full_parameters_of(tool)
    spec = ToolSpec(tool.name, tool.description, tool.parameters, None if full == tool.parameters else full)
    if edits.is_free_form and tool.name in edits.names and is_free_form(tool):
        return replace(spec, free_form=FreeForm(tool.text_argument, tool.grammar))
    return spec
