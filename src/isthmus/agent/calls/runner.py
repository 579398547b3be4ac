"""Settles the open tool calls of a session: announces, decides, runs, and records the result for the model.

Calls are settled in the order in which the model wrote them. All calls that need a user are announced at once; a call
behind them that needs no permission waits for them, since the model meant it to come later. An interrupted call with
an effect is never run again: its result states that the outcome is unknown. An interrupted call without an effect is
run a second time but not a third, since it may be the reason why the work broke off.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import assert_never

from isthmus.agent.approval.grants import CANCEL, PROCEED_ALWAYS_AND_SAVE
from isthmus.agent.approval.kept_approvals import SessionApprovals
from isthmus.agent.approval.outside_reads import details_of
from isthmus.agent.approval.policy import DENIED, Allow, ApprovalRequired, AskedEachTime, Decision, Deny
from isthmus.agent.calls.call_decisions import CallDecisions
from isthmus.agent.calls.call_hooks import CallHooks
from isthmus.agent.calls.events import (
    announced_call,
    call_problem,
    cancelled_call,
    failure_events,
    given_up_calls,
    interruption_events,
    lost_questions,
    refusal_events,
    result_of,
    second_interruption_events,
)
from isthmus.agent.calls.execution import CallExecution
from isthmus.agent.calls.ready_calls import ReadyCall, ReadyCalls
from isthmus.agent.calls.services import NO_SERVICES, CallServices
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.calls.trying import is_harmless, options_for, without_trial
from isthmus.agent.calls.withheld_tools import WithheldTools
from isthmus.agent.hooks.verdicts import Verdict
from isthmus.agent.options import AgentOptions
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import (
    ConfirmationRequest,
    ErrorDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCallStatus,
)
from isthmus.events import TaskState, ToolCallUpdate
from isthmus.internal_events import FilesSeen, ToolResultRecorded
from isthmus.models.port.base import ChatModel
from isthmus.questions import LOOP_QUESTION
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.tools.port.base import (
    Approved,
    AskingTool,
    DelegatingTool,
    FollowingTool,
    Tool,
    ToolKind,
    version_of,
)
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolSet
from isthmus.tools.port.trying import TryingTool

ABOUT_CHARACTERS = 80
_REJECTED = ("Rejected by the user", "The user rejected this call; it was not run.")
_UNANSWERED = (
    "None of the answers was chosen",
    "The user chose none of the answers. Go on without one where you can; otherwise ask in your own words.",
)
MAXIMUM_READS = 2
"""Maximum number of runs of a call without an effect during which the process ends."""


class CallRunner:
    """Runs the tool calls of the session of one turn."""

    def __init__(
        self,
        turn: AgentTurn,
        tools: ToolSet,
        options: AgentOptions,
        services: CallServices = NO_SERVICES,
        *,
        is_permitted: bool = False,
        asked_each_time: AskedEachTime | None = None,
    ) -> None:
        """Prepare to settle calls.

        Args:
            turn: receives the events.
            tools: the tools that the model knows.
            options: the approval policy, folders and environment.
            services: what calls use besides their tools.
            is_permitted: the user requested exactly these calls, so the policy is not consulted.
            asked_each_time: the reason to ask a user about each call, whatever the policy allows.
        """
        session = turn.session
        self._turn = turn
        self._session = session
        self._tools = tools
        self._options = options
        self._suspended = services.suspended if services.suspended is not None else SuspendedCalls()
        self._open_model = services.open_model
        self._hooks = CallHooks(turn, options, services.hook_programs, tools)
        self._decisions = CallDecisions(
            session, options, tools, is_permitted=is_permitted, asked_each_time=asked_each_time
        )
        self._ready = ReadyCalls(session, options, self._decisions, services.open_model)
        self._execution = CallExecution(
            turn,
            self._decisions.policy,
            self._suspended,
            services.checkpoints,
            services.open_model,
            services.before_edit,
            self._hooks,
        )
        self._is_permitted = is_permitted
        self._is_asked_each_time = asked_each_time is not None
        self._offered: tuple[str, ...] | None = None
        was_at_work = session.state is TaskState.WORKING
        begun = [item.request.id for item in session.calls.unsettled if item.is_models or item.call is not None]
        self._reopened = set(begun) if was_at_work else set[str]()
        """Ids of calls that were open when the previous process ended."""

    @property
    def stopped(self) -> str | None:
        """Reason why a hook ended the agent's work; None if none did."""
        return self._hooks.stopped

    async def verdict_on_prompt(self, text: str, *, is_first: bool) -> Verdict:
        """Return what the hooks of the settings say about a prompt; ``is_first``: it begins the session."""
        return await self._hooks.prompt(text, self._decisions.policy, is_first=is_first)

    async def reason_to_go_on(self, answer: str, *, is_again: bool) -> str | None:
        """Return why hooks want the agent to go on after its answer; ``is_again``: they have made it do so before."""
        return await self._hooks.end(self._session.prompt, answer, self._decisions.policy, is_again=is_again)

    def hooked(self, model: ChatModel) -> ChatModel:
        """Return a model whose requests pass through the hooks of the settings; the same one if there are none."""
        stops_loops = self._options.stops_loops
        return self._hooks.model(model, self._open_model, stops_loops=stops_loops, is_in_conversation=True)

    def renew(self, tools: ToolSet, approvals: SessionApprovals | None) -> None:
        """Use these tools for the calls of the next model message."""
        self._tools = self._hooks.tools = self._decisions.tools = tools
        self._decisions.approvals = approvals

    def is_offered(self, tool: Tool) -> bool:
        """Return whether the model is offered a tool: not one whose calls are all refused, since nobody can answer."""
        return self._decisions.is_offered(tool)

    def withheld(self) -> WithheldTools:
        """Return the tools of servers that the model is not offered, though the user could allow them by name."""
        return self._decisions.withheld()

    def name_offered(self, names: Sequence[str]) -> None:
        """Name these tools where the model calls one that does not exist: those of its last request."""
        self._offered = tuple(names)

    def _offered_names(self) -> Sequence[str]:
        if self._offered is not None:
            return self._offered
        return tuple(name for name, tool in self._tools.tools.items() if self.is_offered(tool))

    async def settle(self) -> None:
        """Settle every open call that can be settled; ``calls.waiting`` of the session then has those for the user."""
        session = self._session
        for call in session.calls.given_up:
            await self._suspended.discard(session.task_id, call.tool_call_id)
            if isinstance(tool := self._tools.tools.get(call.tool_name), DelegatingTool):
                await tool.abandon(call.tool_call_id)
        await self._turn.emit(*given_up_calls(session))
        asked_paths: set[str] = set()
        for request_id in [item.request.id for item in session.calls.unsettled]:
            item = session.calls[request_id]
            if session.calls.asker_of(item) is not None or (item.request.name == LOOP_QUESTION and not item.is_models):
                continue  # The call that asks settles its questions, and so does the guard against loops.
            await self._settle_one(item, bool(session.calls.waiting), asked_paths)
            proposal = session.calls[request_id].proposal
            if session.calls[request_id].is_waiting and isinstance(proposal, FileDiff) and not _asks(self._tools, item):
                asked_paths.add(proposal.file_path)

    async def _settle_one(self, item: OpenCall, blocked: bool, asked_paths: Collection[str]) -> None:
        emit, call = self._turn.emit, item.call
        tool = self._tools.tools.get(item.request.name)
        if call is not None and call.status.is_final:
            # The process ended before the journal had the result.
            await emit(result_of(call))
            return
        if call is not None and call.status is ToolCallStatus.EXECUTING:
            if self._execution.is_suspended(call.tool_call_id):
                await self._execution.resume(call.tool_call_id)
                return
            if tool is not None and isinstance(tool, DelegatingTool):
                await self._execution.go_on(call, tool, self._ready.context(item))
                return
            await emit(*lost_questions(self._session, call.tool_call_id, self._turn.broken_off))
            if tool is None or tool.kind is not ToolKind.READ:
                await emit(*interruption_events(call, self._turn.broken_off))
                return
        if item.is_waiting or item.confirmation is not None:
            await self._settle_asked(item, tool)
            return
        if tool is None or item.request.invalid is not None:
            await emit(
                *refusal_events(announced_call(item, ""), call_problem(item, self._tools, self._offered_names()))
            )
            return
        if (decision := self._ready.outside_read(item, tool)) is not None:
            path, decision = decision
            announced = self._ready.described(item, tool)
            ready = ReadyCall(tool, self._ready.context(item), details_of(path), announced, version_of(tool))
            await self._carry_out(ready, await self._after_hooks(ready, decision))
            return
        is_again = item.request.id in self._reopened or (call is not None and call.status is ToolCallStatus.EXECUTING)
        is_free = tool.kind is ToolKind.READ and not self._is_asked_each_time
        if is_again and is_free and isinstance(self._decisions.decide(item, tool, None), Allow):
            if not blocked:
                await self._read_again(item, tool)
            return
        if blocked and isinstance(tool, FollowingTool) and tool.waits_for_earlier(item.request.arguments):
            return
        try:
            ready = await self._ready.propose(item, tool)
        except ToolFailure as failure:
            await emit(*failure_events(self._ready.described(item, tool), failure, self._session.user))
            return
        if isinstance(ready.proposal, FileDiff) and ready.proposal.file_path in asked_paths:
            return  # Proposed once the earlier edit of this file is decided, based on its outcome.
        decision = self._decisions.decide(item, tool, ready.proposal)
        is_tried = isinstance(decision, ApprovalRequired) and isinstance(tool, TryingTool) and not is_again
        is_tried = is_tried and self._decisions.may_try(item, tool, ready.proposal)
        if blocked and (isinstance(decision, Allow) or is_tried):
            return  # It was meant to come after what the user decides first.
        after_hooks = await self._after_hooks(ready, decision)
        if is_tried and after_hooks is decision:
            ready = await self._tried(ready)
            after_hooks = Allow() if is_harmless(ready.proposal) else decision
        await self._carry_out(ready, after_hooks)

    async def _tried(self, ready: ReadyCall) -> ReadyCall:
        """Return a call with what it did in a trial, which has no effect."""
        if not isinstance(ready.tool, TryingTool):
            return ready
        await self._turn.emit(ToolCallUpdate(ready.announced))
        found = await ready.tool.try_out(ready.announced.input_parameters, ready.context)
        return ready if found is None else replace(ready, proposal=found)

    async def _read_again(self, item: OpenCall, tool: Tool) -> None:
        """Run again, after noting it, a call without an effect that was open when the previous process ended."""
        announced = self._ready.described(item, tool)
        self._reopened.discard(item.request.id)
        if item.announcements >= MAXIMUM_READS:
            await self._turn.emit(*second_interruption_events(announced, self._turn.broken_off))
            return
        if item.call is None:
            await self._turn.emit(
                ToolCallUpdate(announced)
            )  # The previous process may have ended in it without announcing it.
        executing = replace(announced, status=ToolCallStatus.EXECUTING)
        await self._turn.emit(ToolCallUpdate(announced), ToolCallUpdate(executing))
        try:
            ready = await self._ready.propose(item, tool)
        except ToolFailure as failure:
            await self._turn.emit(*failure_events(executing, failure, self._session.user))
            return
        decision = await self._after_hooks(ready, Allow())
        if not isinstance(decision, Allow):
            refused = decision if isinstance(decision, Deny) else Deny("A hook of the settings asks about it")
            await self._turn.emit(*refusal_events(executing, ErrorDetails(refused.reason, refused.category)))
            return
        approved = Approved(ready.proposal, version=ready.version)
        await self._execution.begin(executing, ready.tool, ready.context, approved)

    async def _after_hooks(self, ready: ReadyCall, decision: Decision) -> Decision:
        """Return the decision on a call after its hooks; once one of them has ended the work, nothing else runs."""
        if self.stopped is not None:
            return Deny(f"Not run: a hook stopped the work: {self.stopped}")
        return await self._hooks.decide(ready.tool, ready.announced, ready.proposal, self._decisions.policy, decision)

    async def _carry_out(self, ready: ReadyCall, decision: Decision) -> None:
        match decision:
            case ApprovalRequired(options):
                generic = GenericDetails(ready.announced.description or f"Run {ready.tool.name}")
                request = ConfirmationRequest.of(options_for(options, ready.proposal), ready.proposal or generic)
                if isinstance(ready.tool, AskingTool):
                    words = ready.tool.words_option(ready.announced.input_parameters)
                    request = replace(request, words_option=words)
                else:
                    item = self._session.calls[ready.announced.tool_call_id]
                    request = replace(request, risks=self._decisions.risks(item, ready.tool, ready.proposal) or None)
                asking = replace(ready.announced, confirmation_request=request)
                await self._turn.emit(ToolCallUpdate(asking, ready.version or None))
            case Deny(reason, category):
                await self._turn.emit(*refusal_events(ready.announced, ErrorDetails(reason, category)))
            case Allow():
                if await self._is_refused(ready):
                    return
                await self._turn.emit(ToolCallUpdate(ready.announced))
                approved = Approved(ready.proposal, version=ready.version)
                await self._execution.begin(ready.announced, ready.tool, ready.context, approved)
            case _:
                assert_never(decision)

    async def _is_refused(self, ready: ReadyCall) -> bool:
        """Refuse an edit that no user has answered, if the model has not read what it replaces."""
        refusal = None if self._is_permitted else self._ready.overwrite_refusal(ready)
        if refusal is None:
            return False
        error = ErrorDetails(refusal.message, refusal.category)
        shown = () if refusal.shown is None else (FilesSeen((refusal.shown,)),)
        await self._turn.emit(*shown, *refusal_events(ready.announced, error, refusal.for_model))
        return True

    async def _settle_asked(self, item: OpenCall, tool: Tool | None) -> None:
        """Run a call that was announced with a question, once it is answered or another answer covers it."""
        call, confirmation = item.call, item.confirmation
        if call is None:
            return
        if confirmation is not None and confirmation.selected_option_id == CANCEL:
            shown, result = _REJECTED if not isinstance(tool, AskingTool) else _UNANSWERED
            if isinstance(tool, TryingTool) and item.proposal is not None:
                await tool.discard(item.proposal, self._ready.context(item))
            await self._turn.emit(
                ToolCallUpdate(cancelled_call(call, shown)),
                ToolResultRecorded(call.tool_call_id, result, is_error=True),
            )
            return
        if tool is None:
            at_rest = replace(call, confirmation_request=None)
            await self._turn.emit(*refusal_events(at_rest, call_problem(item, self._tools, self._offered_names())))
            return
        if confirmation is None and (
            self._ready.outside_read(item, tool) is not None
            or not isinstance(self._decisions.decide(item, tool, item.proposal), Allow)
        ):
            return
        ruling = self._decisions.ruling(item, tool, item.proposal)
        if ruling is not None and ruling.decision is RuleDecision.DENY:
            at_rest = replace(call, confirmation_request=None)
            await self._turn.emit(*refusal_events(at_rest, ErrorDetails(ruling.reason, DENIED)))
            return
        modified = confirmation.file_details if confirmation is not None else None
        version = self._session.tool_versions.get(call.tool_call_id)
        is_lasting = confirmation is not None and confirmation.selected_option_id == PROCEED_ALWAYS_AND_SAVE
        if is_lasting and self._decisions.approvals is not None and isinstance(item.proposal, McpDetails):
            await self._decisions.approvals.keep(item.proposal, version or "")
        content = modified.new_content if modified is not None else None
        chosen = confirmation.selected_option_id if confirmation is not None else ""
        # The document of a question is not a file to edit.
        proposal = item.proposal if not isinstance(tool, AskingTool) else None
        if confirmation is None:
            proposal = without_trial(proposal)
        approved = Approved(proposal, content, version, chosen)
        at_rest = replace(call, confirmation_request=None)
        context = self._ready.context(item)
        if confirmation is None and await self._is_refused(ReadyCall(tool, context, proposal, at_rest)):
            return
        await self._execution.begin(at_rest, tool, context, approved)


def _asks(tools: ToolSet, item: OpenCall) -> bool:
    """Return whether a call is a question, whose document is not a file."""
    return isinstance(tools.tools.get(item.request.name), AskingTool)
