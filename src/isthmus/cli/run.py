"""``isthmus`` itself: a conversation in this terminal, or one prompt without a user."""

import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from isthmus.client import AgentClient, TaskNotFound
from isthmus.fronts.conversations import find_session
from isthmus.fronts.session_names import LATEST
from isthmus.programs.agent.local_agent import local_agent, rule_for
from isthmus.programs.agent.local_agent_options import UNATTENDED_WAIT_SECONDS, LocalAgentOptions, McpUse
from isthmus.programs.process.browser import open_browser
from isthmus.programs.process.event_loop import run_loop
from isthmus.programs.process.logs import begin_debugging, warnings_announced, warnings_as_lines
from isthmus.programs.setup.sandbox_choice import say_warnings
from isthmus.programs.setup.setup import BadInputError, GivenOptions, Setup, decide, model_line, notices
from isthmus.programs.setup.trust_question import ask_for_trust, report_untrusted
from isthmus.programs.terminal.run_request import RunRequest
from isthmus.terminal.interactive.announcements import Announcements, ShownInEditor
from isthmus.text.visible import visible_line, with_ellipsis
from isthmus.tools.port.tool_set import ToolScope

if TYPE_CHECKING:
    from isthmus.mcp_host.host import McpHost
    from isthmus.terminal.headless.answer_schema import AnswerSchema
    from isthmus.terminal.headless.headless import HeadlessOptions
    from isthmus.tools.port.servers import ServerStatus


MAXIMUM_MISSING = 20
"""Maximum number of servers that are named when their tools are missing."""


def run(options: GivenOptions, request: RunRequest) -> int:
    """Run a conversation or one prompt as requested, and return the exit status.

    Raises:
        BadInputError: options have invalid values.
    """
    if request.worktree is None:
        return _run(options, request)
    from isthmus.programs.terminal.worktree_run import run_in_worktree

    return run_in_worktree(options, request, _run)


def _run(options: GivenOptions, request: RunRequest) -> int:
    setup = replace(decide(options, may_ask=not request.is_headless), is_in_terminal=not request.is_headless)
    if request.worktree is None and (name := _worktree_of_session(setup, request.resume)) is not None:
        return run(options, replace(request, worktree=name))
    say_warnings(setup.sandbox)
    for line in notices(setup):
        sys.stderr.write(f"isthmus: {visible_line(line)}\n")
    if setup.is_debugging:
        begin_debugging(setup.environment, beside_prompt=not request.is_headless and not request.list_sessions)
    if request.list_sessions:
        return run_loop(_list_sessions(setup))
    if request.is_headless:
        return run_loop(_headless(setup, request, answer_schema(request.output_schema)))
    return run_loop(_interactive(setup, request))


def _worktree_of_session(setup: Setup, resume: str | None) -> str | None:
    """Return the name of the worktree of this folder's repository in which the session to resume works."""
    if resume in (None, LATEST) or not (setup.workspace / ".isthmus").is_dir():
        return None
    from isthmus.worktrees.local_worktree import worktree_name

    async def find() -> str | None:
        async with local_agent(setup, rule_for(setup), LocalAgentOptions(is_idle=True)) as engine:
            try:
                session = await find_session(engine, resume)
            except TaskNotFound:
                return None  # said when it is resumed
            return worktree_name(setup.workspace, session.tasks[0].workspace)

    return run_loop(find())


def whole_prompt(prompt: str | None) -> str:
    """Return the prompt with the text piped into standard input.

    Raises:
        BadInputError: both are empty.
    """
    from isthmus.terminal.headless.headless import prompt_with_stdin

    whole = prompt_with_stdin(prompt or "", sys.stdin, sys.stderr)
    if not whole.strip():
        raise BadInputError('The prompt is empty. Give one with -p "TEXT", or on standard input.')
    return whole


class WaitingNotice:
    """Callback that prints the MCP servers a turn waits for, if ``output`` is a terminal; the same list only once."""

    def __init__(self, output: TextIO) -> None:
        self._output = output
        self._told: tuple[str, ...] = ()

    def __call__(self, servers: Sequence[str], seconds: float) -> None:
        """Print that these servers have been waited for since `seconds`."""
        if not servers or not self._output.isatty() or tuple(servers) == self._told:
            return
        self._told = tuple(servers)
        names = visible_line(", ".join(servers))
        self._output.write(
            f"isthmus: waiting up to {UNATTENDED_WAIT_SECONDS:.0f} s for MCP servers to connect: {names}\n"
        )
        self._output.flush()


class AwaitedServers:
    """Callback that keeps the names of the MCP servers a turn is waiting for."""

    def __init__(self) -> None:
        self.names: Sequence[str] = ()

    def __call__(self, servers: Sequence[str], seconds: float) -> None:
        """Remember that these servers have been waited for since `seconds`."""
        self.names = servers


def answer_schema(path: Path | None) -> "AnswerSchema | None":
    """Return the schema of ``--output-schema``; None without the option.

    Raises:
        BadInputError: the file cannot be used.
    """
    if path is None:
        return None
    from isthmus.terminal.headless.answer_schema import AnswerSchemaError, read_answer_schema

    try:
        return read_answer_schema(path)
    except AnswerSchemaError as error:
        raise BadInputError(f"--output-schema: {error}") from error


async def _headless(setup: Setup, request: RunRequest, schema: "AnswerSchema | None") -> int:
    from isthmus.terminal.headless.headless import HeadlessOptions
    from isthmus.terminal.headless.headless_output import ServerLine

    prompt, resume = "" if request.takes_messages else whole_prompt(request.prompt), request.resume
    hosts: list[McpHost] = []
    # No user can ask again, so the first turn waits for the servers that it may use.
    use = McpUse(
        wait_seconds=UNATTENDED_WAIT_SECONDS,
        on_unknown_trust=report_untrusted(sys.stderr),
        on_wait=WaitingNotice(sys.stderr),
        is_for_one_turn=not request.takes_messages,
        on_host=hosts.append,
    )
    async with AsyncExitStack() as stack:
        stack.enter_context(warnings_as_lines(setup.environment))
        engine = await stack.enter_async_context(local_agent(setup, rule_for(setup), LocalAgentOptions(mcp=use)))
        if setup.model.provider == "demo":
            sys.stderr.write(f"isthmus: {model_line(setup)}\n")
        is_command = prompt.lstrip().startswith("/")
        scope = ToolScope(setup.workspace)
        # A command does not wait for servers that it may not need.
        servers = await (hosts[0].servers(scope) if is_command else hosts[0].awaited(scope))
        if not is_command and (notice := missing_notice(servers)):
            sys.stderr.write(f"isthmus: {notice}\n")
        # A session that is resumed would otherwise go on in the mode that it was left in.
        mode = {} if resume is None else {"approval_mode": setup.policy.mode.value}
        options = HeadlessOptions(
            prompt,
            request.output_format,
            settings={"workspace_path": str(setup.workspace), **mode},
            resume=resume,
            workspace=str(setup.workspace),
            model=setup.model.name,
            permission_hint="allow it with --approval-mode or --allowed-tools",
            schema=schema,
            servers=tuple(
                ServerLine(status.name, status.state.value, status.problem) for status in servers if not status.is_file
            ),
        )
        return await run_without_user(engine, options, request)


async def run_without_user(agent: AgentClient, options: "HeadlessOptions", request: RunRequest) -> int:
    """Run the prompt of ``options``, or the messages on standard input, and return the exit status."""
    # A closed stream was replaced, and its text is lost all the same.
    stdout = sys.stdout if sys.__stdout__ is not None else None
    if not request.takes_messages:
        from isthmus.terminal.headless.headless import run_headless

        return await run_headless(agent, options, stdout, sys.stderr)
    from isthmus.runtime.standard_streams import StandardStreams
    from isthmus.terminal.headless.headless_stream import run_stream

    messages = StandardStreams(sys.stdin.fileno(), sys.stdout.fileno()).chunks()
    return await run_stream(agent, options, messages, stdout, sys.stderr)


def missing_notice(servers: "Sequence[ServerStatus]") -> str:
    """Return one line on the servers whose tools are missing from a run, and why; empty when none are."""
    from isthmus.tools.port.servers import ServerState

    missing: list[str] = []
    for status in servers:
        if not status.is_missing:
            continue
        match status.state:
            case ServerState.CONNECTING:
                why = "; ".join(("not connected yet", *([status.problem] if status.problem else ())))
            case ServerState.NEEDS_LOGIN:
                why = f"needs a login: isthmus mcp login {status.name}"
            case _:
                why = with_ellipsis((status.problem or status.state.value).partition("; its last output:")[0], 200)
        missing.append(f"{status.name} ({why})")
    if not missing:
        return ""
    shown = ", ".join(missing[:MAXIMUM_MISSING])
    if len(missing) > MAXIMUM_MISSING:
        shown += f" and {len(missing) - MAXIMUM_MISSING} more"
    return visible_line(f"running without the tools of these MCP servers: {shown}; isthmus mcp doctor NAME says more")


async def _interactive(setup: Setup, request: RunRequest) -> int:
    from isthmus.programs.setup.terminal_settings import keep_theme, settings_lines, theme_of
    from isthmus.programs.terminal.slow_servers import slow_servers_told
    from isthmus.terminal.interactive.attention import CallsBy
    from isthmus.terminal.interactive.interactive import run_interactive
    from isthmus.terminal.interactive.interactive_options import InteractiveOptions

    awaited = AwaitedServers()
    hosts: list[McpHost] = []
    use = McpUse(open_browser=open_browser, on_unknown_trust=ask_for_trust, on_wait=awaited, on_host=hosts.append)
    announcements = Announcements()

    def on_shown(tool_call_id: str, editor: str) -> None:
        announcements.say(ShownInEditor(tool_call_id, editor))

    with warnings_announced(announcements, setup.environment):
        local = LocalAgentOptions(mcp=use, on_shown=on_shown)
        async with local_agent(setup, rule_for(setup), local) as engine:
            options = InteractiveOptions(
                settings={"workspace_path": str(setup.workspace)},
                workspace=str(setup.workspace),
                resume=request.resume,
                first_prompt=request.first_prompt,
                command="isthmus" if request.worktree is None else f"isthmus --worktree {request.worktree}",
                heading=heading(setup),
                history_file=setup.data_dir / "history",
                awaited_servers=lambda: awaited.names,
                approval_mode=setup.policy.mode.value,
                model=setup.model.name,
                calls_by=CallsBy(setup.settings.attention or "all"),
                has_vi_keys=setup.settings.has_vi_keys,
                announcements=announcements,
                theme=theme_of(setup.settings),
                keep_theme=keep_theme,
                settings_lines=partial(settings_lines, setup),
            )
            async with slow_servers_told(hosts, ToolScope(setup.workspace), announcements.say):
                return await run_interactive(engine, options)


async def _list_sessions(setup: Setup) -> int:
    async with local_agent(setup, rule_for(setup), LocalAgentOptions(is_idle=True)) as engine:
        return await print_sessions(engine, str(setup.workspace))


async def print_sessions(agent: AgentClient, workspace: str | None) -> int:
    """Print the sessions, newest first; only a folder's when `workspace` (an absolute path) is given."""
    from isthmus.fronts.conversations import list_sessions
    from isthmus.terminal.interactive.session_list import session_lines

    sessions = await list_sessions(agent, workspace)
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 10_000
    for line in session_lines(sessions, time.time(), width) or ["No sessions yet."]:
        sys.stdout.write(f"{line}\n")
    return 0


def heading(setup: Setup) -> tuple[str, ...]:
    """Return the first lines of a conversation: the model and why it was chosen, the sandbox, the folder."""
    from isthmus import __version__

    home = str(Path.home())
    workspace = str(setup.workspace)
    shown = workspace.replace(home, "~", 1) if workspace.startswith(home) else workspace
    mode = "" if setup.policy.mode == "default" else f" · {setup.policy.mode}"
    sandbox = () if setup.sandbox.commands is None else (f"Sandbox: {setup.sandbox.level}",)
    return (f"Isthmus {__version__} · {shown}{mode}", model_line(setup), *sandbox, "/help for help")
