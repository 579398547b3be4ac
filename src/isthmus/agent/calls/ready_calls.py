"""Calls that are ready for a decision: their context, proposal and description. Nothing is run or recorded here."""

from functools import partial
from pathlib import Path

from isthmus.agent.approval.outside_reads import allowed_reads, options_of
from isthmus.agent.approval.policy import ApprovalMode, ApprovalRequired
from isthmus.agent.approval.requested_file import is_requested
from isthmus.agent.calls.call_decisions import CallDecisions
from isthmus.agent.calls.events import announced_call
from isthmus.agent.calls.web_search import search_web
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import ModelSource
from isthmus.agent.session.known_files import OverwriteRefusal
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.session import Session
from isthmus.development_tool import ConfirmationDetails, FileDiff, ToolCall
from isthmus.record import record
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.tools.port.base import OutsideReader, OverwritingTool, Tool, ToolContext, version_of
from isthmus.tools.port.failure import ToolFailure


@record
class ReadyCall:
    """A call that is ready for a decision, with its tool and its proposal."""

    tool: Tool
    context: ToolContext
    proposal: ConfirmationDetails | None
    announced: ToolCall
    version: str | None = None
    """The version of the tool that proposed it; None if unknown."""


class ReadyCalls:
    """Makes the calls of a session ready for a decision."""

    def __init__(
        self, session: Session, options: AgentOptions, decisions: CallDecisions, open_model: ModelSource | None
    ) -> None:
        self._session = session
        self._options = options
        self._decisions = decisions
        self._open_model = open_model

    async def propose(self, item: OpenCall, tool: Tool) -> ReadyCall:
        """Return a call with its proposal.

        Raises:
            ToolFailure: the tool refuses its arguments.
        """
        context = self.context(item)
        arguments = item.request.arguments
        proposal = await tool.propose(arguments, context)
        return ReadyCall(tool, context, proposal, announced_call(item, tool.describe(arguments)), version_of(tool))

    def described(self, item: OpenCall, tool: Tool) -> ToolCall:
        """Return a call as it is announced without a proposal; without a description if its arguments are invalid."""
        return announced_call(item, _description(tool, item))

    def outside_read(self, item: OpenCall, tool: Tool) -> tuple[Path, ApprovalRequired] | None:
        """Return the file outside the workspace that a call may only read if the user allows it, and the question."""
        session, policy = self._session, self._decisions.policy
        if not isinstance(tool, OutsideReader) or item.confirmation is not None:
            return None
        if session.user or not self._options.may_include_folders or not policy.may_ask:
            return None  # A server's users must not choose what of its machine they read.
        if policy.mode is ApprovalMode.YOLO:
            return None  # It never asks.
        ruling = self._decisions.ruling(item, tool, None)
        if ruling is not None and ruling.decision is RuleDecision.DENY:
            return None
        path = tool.outside(item.request.arguments, self.context(item))
        return None if path is None else (path, ApprovalRequired(options_of(path)))

    def overwrite_refusal(self, ready: ReadyCall) -> OverwriteRefusal | None:
        """Return why an edit is refused that no user has answered; None if the model has read what it replaces."""
        change, tool, session = ready.proposal, ready.tool, self._session
        if not isinstance(change, FileDiff) or not isinstance(tool, OverwritingTool):
            return None
        if is_requested(session, change.file_path):
            return None
        shown = ready.context.workspace.relative(Path(change.file_path))
        overwriting = tool.overwriting(ready.announced.input_parameters)
        return session.conversation.known_files.refusal(change, shown, overwriting, session.messages)

    def context(self, item: OpenCall) -> ToolContext:
        """Return what a tool is given for a call."""
        session = self._session
        return ToolContext(
            self._options.workspace_of(
                Path(session.workspace), session.user, session.choices.added_folders, self._decisions.access(item)
            ),
            item.request.id,
            self._options.output_folder / self._session.task_id,
            self._options.environment_of(self._session.user),
            (*self._decisions.tools.readable_folders, *allowed_reads(session.answered, item)),
            self._session.key,
            partial(search_web, self._open_model, (session.choices.model, *self._options.fallback_models))
            if self._open_model is not None
            else None,
        )


def _description(tool: Tool, item: OpenCall) -> str:
    """Return the description of a call that cannot be made; empty if its arguments are invalid."""
    try:
        return tool.describe(item.request.arguments)
    except ToolFailure:
        return ""
