"""The work of the coding agent on one task: model, tool calls, results, model again, until an answer or a question.

It begins with what precedes the model's first message (hooks, references, context), and repeats one step. It looks for
new tools before each message of the model, since servers connect and change their tools.
"""

from dataclasses import replace
from functools import partial

from isthmus.agent.approval.policy_rules import rules_for
from isthmus.agent.calls.model_reply import RepeatedTextError, ReplyStream
from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.calls.services import CallServices
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.coding.fallback import FallbackModels
from isthmus.agent.coding.loop_guard import LoopGuard
from isthmus.agent.coding.model_requests import ModelRequests
from isthmus.agent.context.keeper import ContextKeeper
from isthmus.agent.context.switch_price import effort_price, switch_price
from isthmus.agent.context.windows import window_of
from isthmus.agent.environment import has_environment
from isthmus.agent.hooks.refusal import STOPPED_BY_HOOK
from isthmus.agent.hooks.verdicts import Verdict
from isthmus.agent.options import AgentOptions
from isthmus.agent.part import PartTurn
from isthmus.agent.references.reading import read_references
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import PROMPT_REFUSED, Session
from isthmus.agent.session.size import say_if_unknown
from isthmus.agent.session.turn import AgentTurn
from isthmus.agent.subagents.child_tools import child_tools
from isthmus.agent.tool_search.loading import SearchOptions, ToolLoading
from isthmus.development_tool import AgentThought
from isthmus.events import StateChange, TaskState, Thought
from isthmus.internal_events import HOOK_CONTEXT, HOOK_NOTE, LIMIT_NOTE, ContextNote, EnvironmentContext, ToolsLoaded
from isthmus.models.port.base import ChatModel, ModelError, ModelErrorKind, ModelRequest, text_of
from isthmus.tools.port.tool_set import ToolScope, ToolSet

TURN_LIMIT = "turn_limit"
"""Reason of a task that failed because the model needed too many turns."""
MAXIMUM_CONTINUATIONS = 10
"""Maximum number of times that hooks make the agent go on after its answer to one prompt."""
LAST_TURN = "This is your last message: make no more calls, and answer with what you have found and done so far."
"""Text for a subagent that has used all but one of its model messages."""


class TaskWork:
    """Work on the task of a turn, in this process."""

    def __init__(
        self,
        turn: AgentTurn,
        scope: ToolScope,
        tools: ToolSet,
        resources: AgentResources,
        options: AgentOptions,
        requests: ModelRequests,
        suspended: SuspendedCalls,
    ) -> None:
        """Prepare the work.

        Args:
            turn: receives the events.
            scope: what the tools are for.
            tools: the present tools for that scope.
            resources: what the agent uses.
            options: the approval policy, folders and limits.
            requests: makes the requests to the model.
            suspended: keeps calls that ask a question while they run.
        """
        self._turn = turn
        self._session = session = turn.session
        self._scope = scope
        self._tools = tools
        self._resources = resources
        self._options = options
        self._requests = requests
        self._part_turn = PartTurn(scope, session.key, is_of_subagent=session.subagent is not None)
        self._loading = _loading(session, tools, options.tool_search)
        services = CallServices(
            resources.checkpoints,
            suspended,
            resources.open_model,
            partial(resources.parts.before_edit, self._part_turn),
            resources.hook_programs,
        )
        self._calls = CallRunner(turn, self._loading.tools, options, services)
        self._keeper = ContextKeeper(turn, options.compaction_share, requests.windows)
        self._models = FallbackModels(resources.open_model, options.fallback_models)
        self._guard = LoopGuard(turn, may_ask=options.policy.may_ask, is_on=options.stops_loops)
        self._continued = 0
        """Number of times that hooks have made the agent go on after its answer."""

    async def run(self) -> StateChange:
        """Work up to the end of the task or a question, and return that state.

        Raises:
            ModelError: no model answers.
            RefusedByHookError: a hook refuses a request to the model.
        """
        if (end := await self._begin()) is not None:
            return end
        while (end := await self._step()) is None:
            pass
        return end

    async def _begin(self) -> StateChange | None:
        """Do what precedes the model's first message; return the end of the work if a hook refuses the prompt."""
        session = self._session
        self._calls.renew(self._loading.tools, await self._resources.approvals_of(session.user, self._tools))
        if session.state is TaskState.SUBMITTED:
            await self._turn.emit(StateChange(TaskState.WORKING))
        if not session.calls.unsettled:
            # A model that cannot be opened fails the task before calls run.
            await self._resources.open_model(session.choices.model)
        context: tuple[str, ...] = ()
        if session.model_turns == 0 and not session.calls.unsettled:
            # Once for each prompt: after a crash before the first reply the hooks run again.
            is_first = all(message.role == "user" for message in session.messages)
            verdict = await self._calls.verdict_on_prompt(_prompt_text(session), is_first=is_first)
            if (end := _end_by_hook(verdict)) is not None:
                return end
            context = verdict.context
        if session.command is None and session.subagent is None:
            await self._read_references()
        if not session.calls.unsettled:
            await self._emit_context()
        for text in context:
            await self._turn.emit(_note_of_hook(text))
        return None

    async def _emit_context(self) -> None:
        """Tell the model about its environment, once for each session, and what the parts say at a prompt."""
        resources, session = self._resources, self._session
        if resources.environment is not None and not has_environment(session.messages):
            await self._turn.emit(EnvironmentContext(await resources.environment(self._scope)))
        await self._turn.emit(*await resources.parts.notes_at_prompt(self._part_turn, session.note_sources))

    async def _read_references(self) -> None:
        resources = self._resources
        await read_references(
            self._turn, resources.contents, self._scope, self._tools, self._options, resources.hook_programs
        )

    async def _step(self) -> StateChange | None:
        """Settle the calls, and ask the model; return the end of the work, or its question, if that is it."""
        if (end := await self._settle()) is not None:
            return end
        if await self._turn.takes_steering():
            await self._read_references()
            return None
        if (end := await self._over_limit()) is not None:
            return end
        await self._renew()
        await self._emit_notes()
        try:
            end = await self._ask_model()
        except RepeatedTextError as repeated:
            return await self._guard.act(
                f"repeated a passage without end ({repeated.passage})",
                f"Your last answer repeated the same passage without end ({repeated.passage}). It was stopped and"
                " discarded. Answer without the repetition, or say what is in the way.",
            )
        if end is None or end.state is not TaskState.COMPLETED:
            return end
        return None if await self._goes_on() else end

    async def _settle(self) -> StateChange | None:
        """Settle the calls; return the end of the work if a question, a hook or a loop is that."""
        if (end := await self._guard.settle()) is not None:
            return end
        await self._calls.settle()
        if self._session.calls.waiting:
            return StateChange(TaskState.INPUT_REQUIRED)
        if self._calls.stopped is not None:
            return StateChange(TaskState.FAILED, f"A hook stopped the work: {self._calls.stopped}", STOPPED_BY_HOOK)
        return await self._guard.check()

    @property
    def _limit(self) -> int | None:
        """Maximum number of messages of the model for one prompt."""
        subagent = self._session.subagent
        return subagent.max_turns if subagent is not None else self._options.max_model_turns

    async def _over_limit(self) -> StateChange | None:
        """Return the end of the work if the model may not be asked again."""
        limit = self._limit
        if limit is not None and self._session.model_turns >= limit:
            message = f"The model needed more than {limit} turns for one prompt. Send a message to continue."
            return StateChange(TaskState.FAILED, message, TURN_LIMIT)
        if (refusal := await self._turn.refusal()) is not None:
            return StateChange(TaskState.FAILED, refusal.text, refusal.reason)
        return None

    async def _renew(self) -> None:
        """Use the present tools for the next message of the model."""
        now = await self._resources.tools.renewed(self._scope, self._tools)
        if now is not self._tools:
            self._tools, self._loading = now, _loading(self._session, now, self._options.tool_search)
            self._calls.renew(self._loading.tools, await self._resources.approvals_of(self._session.user, now))

    async def _emit_notes(self) -> None:
        """Tell the model what the parts say before its message, and a subagent that it is its last one."""
        session, limit = self._session, self._limit
        await self._turn.emit(*await self._resources.parts.notes_before_model(self._part_turn))
        if session.subagent is not None and limit is not None and 0 < session.model_turns == limit - 1:
            await self._turn.emit(ContextNote(LIMIT_NOTE, LAST_TURN))

    async def _goes_on(self) -> bool:
        """Return whether hooks make the agent go on after its answer; the model has been told why."""
        if self._continued >= MAXIMUM_CONTINUATIONS:
            return False
        answer = text_of(self._session.messages[-1])
        reason = await self._calls.reason_to_go_on(answer, is_again=self._continued > 0)
        if reason is None:
            return False
        self._continued += 1
        await self._turn.emit(_note_of_hook(f"You are not done: {reason}"))
        return True

    async def _ask_model(self) -> StateChange | None:
        """Emit the next message of the first model that is not overloaded; return the end of the turn if that is it."""
        reply = ReplyStream(self._turn, stops_loops=self._options.stops_loops)
        await self._say_price_of_switch()
        while True:
            model = await self._models.present(self._session.choices.model)
            is_priced = model.capabilities.costs is not None
            if (refusal := self._turn.price_refusal(model.name, is_priced=is_priced)) is not None:
                return StateChange(TaskState.FAILED, refusal.text, refusal.reason)
            try:
                return await self._ask(self._calls.hooked(model), reply)
            except ModelError as error:
                await self._turn.emit(await self._models.after(model, error))

    async def _say_price_of_switch(self) -> None:
        """Say what it costs that a client has chosen another model or effort with its message."""
        session = self._session
        if (before := session.choices.unsaid) is None or not session.conversation.measured_messages:
            return
        open_model = self._resources.open_model
        try:
            present, chosen = await open_model(before[0]), await open_model(session.choices.model)
        except ModelError:
            return  # The request says it, if the chosen one is the reason.
        price = switch_price(session, present, chosen) or effort_price(
            session, chosen, before[1], session.choices.effort, self._options.effort
        )
        if price is not None:
            await self._turn.emit(Thought(AgentThought("Price of the switch", price.text)))

    async def _ask(self, model: ChatModel, reply: ReplyStream) -> StateChange | None:
        """Emit the model's next message, after compacting the conversation if necessary.

        Return the end of the turn if the message ends it.
        """
        session = self._session
        request = await self._request(model)
        await self._keeper.before(model, request)

        while True:
            if not self._requests.is_begun(session, model):  # It was compacted.
                request = await self._request(model)
            request = replace(request, messages=tuple(session.messages))
            try:
                end = await reply.stream(model, request, self._loading.tools.tools)
            except ModelError as error:
                if error.kind is not ModelErrorKind.CONTEXT_TOO_LONG:
                    raise
                too_long = error
            else:
                say_if_unknown(model)  # After the answer: some servers tell the window only then.
                return end
            # Each time the conversation becomes shorter, or this raises the error.
            await self._keeper.after(model, request, too_long)

    async def _request(self, model: ChatModel) -> ModelRequest:
        """Return the next request to a model, with the tools that fit its window if its beginning is made anew."""
        session, loading = self._session, self._loading
        window = window_of(session, model)
        loading.fit(window)
        if not self._requests.is_begun(session, model) and loading.begins(session.choices.loaded_tools, window):
            await self._turn.emit(ToolsLoaded())
        request = await self._requests.request(self._turn, self._scope, loading, model, self._calls)
        return replace(request, has_fallback=self._models.has_more)


def _loading(session: Session, tools: ToolSet, options: SearchOptions) -> ToolLoading:
    """Return the choice of a session's tools for its model. The agent itself is told of tools that come later."""
    return ToolLoading(_tools_of(session, tools), options, takes_more=session.subagent is None)


def _tools_of(session: Session, tools: ToolSet) -> ToolSet:
    """Return the tools that the session's agent, or its subagent, may use."""
    if session.subagent is not None:
        return child_tools(tools, session.subagent)
    if all(rule.subagent is None for rule in tools.policies):
        return tools
    return replace(tools, policies=rules_for(tools.policies, None))


def _prompt_text(session: Session) -> str:
    """Return the text that the user, or a command for the user, has written since the model's last message."""
    if session.new_prompts:
        return "\n\n".join(prompt.text for prompt in session.new_prompts)
    last = session.messages[-1] if session.messages else None
    return text_of(last) if last is not None and last.role == "user" else ""


def _end_by_hook(verdict: Verdict) -> StateChange | None:
    """Return the end of a turn whose prompt a hook has refused; None if it may go on."""
    if verdict.stop is not None:
        return StateChange(TaskState.FAILED, f"A hook stopped the work: {verdict.stop}", STOPPED_BY_HOOK)
    reason = verdict.denial or verdict.question
    return (
        None
        if reason is None
        else StateChange(TaskState.FAILED, f"A hook refused the prompt: {reason}", PROMPT_REFUSED)
    )


def _note_of_hook(text: str) -> ContextNote:
    return ContextNote(HOOK_NOTE, f"{HOOK_CONTEXT}\n{text}\n</hook_context>")
