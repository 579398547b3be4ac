"""Decisions on the tool calls of one turn: the policy, its rules, and what the user has allowed so far. No I/O.

Not here: asking, running and the hooks, see :mod:`isthmus.agent.calls.runner`.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from isthmus.agent.approval.call_risks import RiskyFacts, risks_of
from isthmus.agent.approval.grants import (
    CANCEL,
    PROCEED_ONCE,
    CommandGrant,
    Grant,
    PrefixGrant,
    ServerGrant,
    ServerToolGrant,
    ToolGrant,
    grants_of,
)
from isthmus.agent.approval.guarded_commands import changes_guarded_file
from isthmus.agent.approval.kept_approvals import SessionApprovals
from isthmus.agent.approval.permission_rules import access_of, may_permit
from isthmus.agent.approval.policy import (
    Allow,
    ApprovalMode,
    ApprovalRequired,
    AskedEachTime,
    Decision,
    Deny,
    Policy,
    decide,
    decide_each_time,
    decide_question,
    is_always_refused,
    is_guarded,
)
from isthmus.agent.approval.policy_rules import Ruling, may_allow
from isthmus.agent.approval.private_reads import AskedReads, agreed_reads, asked_reads, decide_reads
from isthmus.agent.approval.requested_file import is_requested
from isthmus.agent.approval.restricted_tools import named_tool
from isthmus.agent.approval.session_policy import policy_for
from isthmus.agent.approval.tried_lines import may_be_tried
from isthmus.agent.calls.call_rules import moved_files, ruling_of, server_of, server_tools_of
from isthmus.agent.calls.withheld_tools import WithheldTools
from isthmus.agent.options import AgentOptions
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.session import Session
from isthmus.development_tool import ConfirmationDetails, ExecuteDetails, FileDiff, McpDetails
from isthmus.files.path_rules import PathAccess, followed
from isthmus.files.private_files import PRIVATE_FILES, is_private
from isthmus.sandbox.guarded_paths import starts_program
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.tools.port.base import AskingTool, RemovingTool, Tool, ToolKind, version_of
from isthmus.tools.port.tool_set import ToolSet
from isthmus.tools.port.workspace import Workspace


class CallDecisions:
    """Decides on the calls of a session's turn. ``tools`` and ``approvals`` may be replaced between model messages.

    ``is_permitted``: the user requested exactly these calls, so the policy is not consulted. ``asked_each_time`` is the
    reason to ask a user about each call, whatever the policy allows.
    """

    def __init__(
        self,
        session: Session,
        options: AgentOptions,
        tools: ToolSet,
        approvals: SessionApprovals | None = None,
        *,
        is_permitted: bool = False,
        asked_each_time: AskedEachTime | None = None,
    ) -> None:
        self.tools = tools
        self.approvals = approvals
        self._session = session
        self._options = options
        self._is_permitted = is_permitted
        self._asked_each_time = asked_each_time
        self._granted: frozenset[Grant] = frozenset()
        self._answers_seen = 0

    def decide(self, item: OpenCall, tool: Tool, proposal: ConfirmationDetails | None) -> Decision:
        """Return whether a call may run now, is refused, or needs a user; ``proposal`` is what it would do."""
        ruling = self.ruling(item, tool, proposal)
        if ruling is not None and ruling.decision is RuleDecision.DENY:
            return Deny(ruling.reason)
        if isinstance(tool, AskingTool):
            return decide_question(self.policy, tool.choices(item.request.arguments))
        if self._is_permitted:
            return Allow()
        policy = self._policy_for(proposal)
        if (asked := self._reason_to_ask(tool, ruling)) is not None:
            return decide_each_time(policy, tool.name, asked, tool.kind)
        reads = self._asked_reads(item, tool, policy)
        if reads and tool.kind is ToolKind.READ:
            return self._with_kept_answers(decide_reads(policy, tool.name, reads))
        grants = self._grants_for(policy, tool, proposal, ruling)
        if reads:
            grants = frozenset(grant for grant in grants if isinstance(grant, CommandGrant))
        elif isinstance(proposal, ExecuteDetails) and self._changes_guarded(proposal):
            # A permission for the first words of a command says nothing about these files.
            grants = frozenset(grant for grant in grants if not isinstance(grant, PrefixGrant))
        server = proposal.server_name if isinstance(proposal, McpDetails) else None
        moved = moved_files(tool, item.request.arguments, Path(self._session.workspace))
        guarded = self._guarded_paths(policy, proposal, moved)
        decision = decide(
            replace(policy, grants=grants),
            tool.name,
            tool.kind,
            item.request.arguments,
            is_guarded=bool(guarded),
            is_starting=any(map(starts_program, guarded)),
            server=server,
            may_keep=server is not None and self.approvals is not None and self.approvals.may_keep(server),
            folder=folder_of(proposal),
            allowed_as=self._allowed_as(tool, proposal),
        )
        if reads and isinstance(decision, Deny):
            return decide_reads(policy, tool.name, reads)
        return self._with_kept_answers(decision)

    def risks(self, item: OpenCall, tool: Tool, proposal: ConfirmationDetails | None) -> tuple[str, ...]:
        """Return what is known to make a call risky; follows symbolic links, which blocks for a moment."""
        arguments = item.request.arguments
        if isinstance(proposal, FileDiff):
            paths = followed(Path(proposal.file_path))
            is_removal = isinstance(tool, RemovingTool) and tool.removes(arguments)
            facts = RiskyFacts(is_removal, is_private(paths), any(starts_program(Path(path)) for path in paths))
        elif (server := server_tools_of(self.tools, tool.name)) is None:
            reads = asked_reads(tool.name, tool.kind, arguments, self._workspace)
            facts = RiskyFacts(has_secrets=bool(reads.files))
        else:
            facts = RiskyFacts(reaches_network=server.is_remote)
        return risks_of(tool.name, proposal, self.policy, facts)

    def may_try(self, item: OpenCall, tool: Tool, proposal: ConfirmationDetails | None) -> bool:
        """Return whether a call about which a user would be asked may be tried first, where that has no effect.

        Not where the user is asked about it whatever it does: by a setting, a policy, or because of what it reads.
        """
        if not self._options.tries_commands or self._is_permitted or not isinstance(proposal, ExecuteDetails):
            return False
        if any(item.request.arguments.get(name) is True for name in ("is_background", "outside_trial")):
            return False
        policy, ruling = self._policy_for(proposal), self.ruling(item, tool, proposal)
        if not policy.may_ask or policy.mode not in (ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT):
            return False
        if self._reason_to_ask(tool, ruling) is not None or self._asked_reads(item, tool, policy):
            return False
        workspace = self._workspace
        folder = workspace.root / (proposal.working_directory or "")
        return may_be_tried(proposal.command, folder, workspace, self._context_files)

    def _policy_for(self, proposal: ConfirmationDetails | None) -> Policy:
        """Return the policy of the session for a call; nothing is granted in advance to a server of the client."""
        base = self._options.policy
        if isinstance(proposal, McpDetails) and proposal.server_name in self.tools.foreign_servers:
            base = replace(base, grants=frozenset())
        rule = self._options.settings_rule
        return policy_for(base, self._session.settings, rule, yolo_refusal=self.tools.yolo_refusal)

    def _reason_to_ask(self, tool: Tool, ruling: Ruling | None) -> AskedEachTime | None:
        """Return why a user is asked about each call of a tool, whatever the policy allows; None if they are not."""
        if self._asked_each_time is not None:
            return self._asked_each_time
        if (reason := self.tools.always_asked.get(tool.name)) is not None:
            return AskedEachTime(reason, "Only a change of that setting allows it.")
        if ruling is not None and ruling.decision is RuleDecision.ASK:
            return AskedEachTime(ruling.reason, "Only a change of that policy allows it.")
        return None

    def _grants_for(
        self, policy: Policy, tool: Tool, proposal: ConfirmationDetails | None, ruling: Ruling | None
    ) -> frozenset[Grant]:
        """Return the grants for a call, with one for its tool where a name in an allow-list, or a rule, allows it.

        ``ruling`` neither forbids the call nor asks about it.
        """
        grants = policy.grants | self._present_grants()
        server = proposal.server_name if isinstance(proposal, McpDetails) else None
        if isinstance(proposal, McpDetails):
            grants = self._with_names_of_server(grants, tool, proposal)
        if ruling is not None and server not in self.tools.foreign_servers:
            grants |= {ToolGrant(tool.name)}
        return grants

    def _with_names_of_server(self, grants: frozenset[Grant], tool: Tool, proposal: McpDetails) -> frozenset[Grant]:
        """Return grants with one for a server's tool, if they name it or its server, and without one that does not."""
        if _is_named_after_another(tool.name, proposal.server_name, self.tools):
            # The name in the allow-list means the other server.
            grants -= {ToolGrant(tool.name)}
        named: set[Grant] = {ServerToolGrant(proposal.server_name, proposal.tool_name, version_of(tool))}
        if proposal.server_name not in self.tools.tools:
            # Allow-lists name all tools of a server, or one by the server's own name for it.
            named |= {ToolGrant(proposal.server_name), ToolGrant(f"{proposal.server_name}.{proposal.tool_name}")}
        return grants if named.isdisjoint(grants) else grants | {ToolGrant(tool.name)}

    def _guarded_paths(
        self, policy: Policy, proposal: ConfirmationDetails | None, moved: Iterable[str]
    ) -> tuple[Path, ...]:
        """Return the files that a call would edit or move, and about whose edits the user is asked.

        Where nobody can be asked, the file that the user requested is not one of them.
        """
        if not isinstance(proposal, FileDiff):
            return ()
        session = self._session
        return tuple(
            Path(path)
            for path in (proposal.file_path, *moved)
            if is_guarded(Path(path), self._context_files) and (policy.may_ask or not is_requested(session, path))
        )

    @property
    def _context_files(self) -> tuple[str, ...]:
        """Names of the files that instruct the agent."""
        settings = self._session.settings
        return (*self._options.context_files, *(settings.context_files if settings is not None else ()))

    def _with_kept_answers(self, decision: Decision) -> Decision:
        """Return a decision whose question offers lasting answers only if the folder's settings keep them."""
        if isinstance(decision, ApprovalRequired) and not self.tools.keeps_answers:
            return ApprovalRequired(tuple(option for option in decision.options if option.id in (PROCEED_ONCE, CANCEL)))
        return decision

    def access(self, item: OpenCall) -> PathAccess:
        """Return the rules on paths for a call. Files with secrets, and ignored ones, need the user's agreement."""
        rules = access_of(self.tools.permissions)
        if self.policy.mode is ApprovalMode.YOLO:
            return rules
        agreed = agreed_reads(self._session.answered)
        # What the call itself names was decided on.
        named = asked_reads(item.request.name, ToolKind.READ, item.request.arguments, self._workspace)
        return replace(
            rules,
            asked=(PRIVATE_FILES,),
            agreed=frozenset((*agreed.files, *named.files)),
            asks_ignored=True,
            agreed_folders=frozenset((*agreed.folders, *named.folders)),
        )

    @property
    def _workspace(self) -> Workspace:
        """The workspace of the session, without rules on its paths."""
        session = self._session
        return self._options.workspace_of(Path(session.workspace), session.user, session.choices.added_folders)

    def _changes_guarded(self, proposal: ExecuteDetails) -> bool:
        folder = Path(self._session.workspace) / (proposal.working_directory or "")
        return changes_guarded_file(proposal.command, folder, self._context_files)

    def _asked_reads(self, item: OpenCall, tool: Tool, policy: Policy) -> AskedReads:
        """Return the reads of a call about which the user is asked, and to which they have not agreed."""
        if policy.mode is ApprovalMode.YOLO or server_of(self.tools, tool.name) is not None:
            return AskedReads()
        found = asked_reads(tool.name, tool.kind, item.request.arguments, self._workspace)
        return found.besides(agreed_reads(self._session.answered)) if found else found

    def _present_grants(self) -> frozenset[Grant]:
        """Return the grants besides those of the policy: of the user's answers, of trusted servers, of all sessions."""
        trusted = frozenset(ServerGrant(name) for name in self.tools.trusted_servers)
        kept = self.approvals.grants if self.approvals is not None else frozenset[Grant]()
        return self._grants() | trusted | kept

    def is_offered(self, tool: Tool) -> bool:
        """Return whether the model is offered a tool: not one whose calls are all refused, since nobody can answer."""
        # Settings of a session do not change whether somebody can answer.
        if self._options.policy.may_ask or self._is_permitted or self._session.requested_file:
            return True
        if isinstance(tool, AskingTool) or tool.name in self.tools.always_asked:
            return False
        server = server_of(self.tools, tool.name)
        named = named_tool(tool, server)
        if may_allow(self.tools.policies, named) or may_permit(self.tools.permissions, named):
            return True
        policy = self.policy
        now = replace(policy, grants=policy.grants | self._present_grants())
        return not is_always_refused(now, tool.name, tool.kind, server)

    def _allowed_as(self, tool: Tool, proposal: ConfirmationDetails | None) -> str:
        """Return the name of a tool in allow-lists that no other tool can have."""
        if isinstance(proposal, McpDetails) and proposal.server_name not in self.tools.tools:
            return f"{proposal.server_name}.{proposal.tool_name}"
        return tool.name

    def withheld(self) -> WithheldTools:
        """Return the tools of servers that the model is not offered, though the user could allow them by name."""
        if self._options.policy.may_ask or self.policy.mode is ApprovalMode.PLAN:
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for server in self.tools.servers:
            tools = [self.tools.tools[name] for name in server.tools if name not in self.tools.always_asked]
            names = tuple(named_tool(tool, server.name).own for tool in tools if not self.is_offered(tool))
            if names and server.name not in self.tools.foreign_servers:
                found[server.name] = () if len(names) == len(server.tools) else names
        return found

    def ruling(self, item: OpenCall, tool: Tool, proposal: ConfirmationDetails | None) -> Ruling | None:
        """Return the decision of policy files and permission rules on a call; None if no rule applies."""
        workspace = Path(self._session.workspace)
        return ruling_of(self.tools, tool, item.request.arguments, proposal, self.policy, workspace)

    @property
    def policy(self) -> Policy:
        """The approval policy of the session, without the answers of users."""
        settings, rule = self._session.settings, self._options.settings_rule
        return policy_for(self._options.policy, settings, rule, yolo_refusal=self.tools.yolo_refusal)

    def _grants(self) -> frozenset[Grant]:
        """Return the grants of the user's answers; each answer is evaluated once."""
        answered = self._session.answered
        for call, option in answered[self._answers_seen :]:
            asked, tool = call.confirmation_request, self.tools.tools.get(call.tool_name)
            mcp = asked.mcp_details if asked is not None else None
            if tool is not None or mcp is not None:
                kind = tool.kind if tool is not None else ToolKind.OTHER
                version = self._session.tool_versions.get(call.tool_call_id, "")
                folder = folder_of(asked.execute_details if asked is not None else None)
                arguments = call.input_parameters
                self._granted |= grants_of(option, call.tool_name, kind, arguments, mcp, version, folder)
        self._answers_seen = len(answered)
        return self._granted


def folder_of(proposal: ConfirmationDetails | None) -> str:
    """Return the absolute path of the folder in which a proposed command would run; empty if it is not known."""
    return (proposal.working_directory or "") if isinstance(proposal, ExecuteDetails) else ""


def _is_named_after_another(tool: str, server: str, tools: ToolSet) -> bool:
    """Return whether the name of a server's tool means another server, or its tool, in allow-lists."""
    others = [other.name for other in tools.servers if other.name != server]
    is_own = tool.startswith(f"{server}__")
    return not is_own and any(tool == other or tool.startswith((f"{other}.", f"{other}__")) for other in others)
