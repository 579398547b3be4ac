"""``isthmus mcp serve``: the agent as an MCP server on standard input and output."""

import asyncio
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

import click

from isthmus.cli.arguments.agent_options import agent_options
from isthmus.programs.setup.setup import GivenOptions

if TYPE_CHECKING:
    from isthmus.programs.setup.setup import Setup
    from isthmus.runtime.apart import FirstProcess

ALONE_SECONDS = 12 * 3600.0
"""Maximum time in seconds that started tasks run on after the client has gone; then they wait in the journal."""


@click.command("serve")
@agent_options
@click.option("--beat-seconds", type=click.FloatRange(min=0.01), hidden=True)
@click.option("--behind", type=int, metavar="DESCRIPTOR", hidden=True)
def command(beat_seconds: float | None, behind: int | None, given: GivenOptions) -> int:
    """Serve the agent as an MCP server on standard input and output, for other agents and editors.

    The tool run_task gives the agent a task in this folder and returns the answer. start_task begins one that goes on
    without the call, and after the client has ended; get_task says how it gets on, from any client, and cancel_task
    stops it. What the agent asks goes to the client's user (elicitation), and no tool answers it. A client that cannot
    ask gets from run_task what --approval-mode and --allowed-tools allow: the rest is refused. A started task waits for
    an answer there, in the terminal or in the workbench.

    The tools get_editor_context, get_diagnostics, open_file and review_edit use the editor that has the folder open.
    review_edit shows an edit there and waits up to ten minutes for the user; the client writes what was accepted.
    With --no-ide they are not offered.

    \b
    claude mcp add isthmus -- isthmus mcp serve --workspace ~/project
    """
    if behind is None:
        return _begin()
    from isthmus.programs.process.event_loop import run_loop
    from isthmus.programs.process.logs import Redaction, begin_log, secrets_of
    from isthmus.programs.setup.setup import decide, notices
    from isthmus.runtime.apart import FirstProcess
    from isthmus.runtime.standard_streams import take_standard_streams
    from isthmus.text.visible import visible_line

    first = FirstProcess(behind)
    streams = take_standard_streams()
    sys.stdout = sys.stderr
    begin_log("text", "debug" if given.debug else "warning", Redaction(secrets_of(os.environ)))
    setup = decide(given, may_ask=True)
    for line in notices(setup):
        click.echo(f"isthmus: {visible_line(line)}", err=True)
    run_loop(_serve(setup, first, *streams, beat_seconds))
    return 0


def _begin() -> int:
    """Serve in a process that clients do not end, because it may have to go on with tasks after they have gone."""
    from isthmus.runtime.apart import run_apart
    from isthmus.runtime.group_guard import MARK

    program = (sys.executable, "-P", "-m", "isthmus", *sys.argv[1:], "--behind")
    # Or it would be killed with the client if that is Isthmus.
    return run_apart(program, {name: value for name, value in os.environ.items() if name != MARK})


async def _serve(
    setup: "Setup", first: "FirstProcess", incoming: int, outgoing: int, beat_seconds: float | None
) -> None:
    from isthmus.parts.editor.directory import EditorDirectory
    from isthmus.programs.agent.local_agent import local_agent, rule_for
    from isthmus.programs.agent.local_agent_options import UNATTENDED_WAIT_SECONDS, LocalAgentOptions, McpUse
    from isthmus.programs.mcp.editor_tools import EditorTools
    from isthmus.programs.mcp.progress import BEAT_SECONDS
    from isthmus.programs.mcp.serving import AgentMcpServer
    from isthmus.runtime.standard_streams import StandardStreams

    streams = StandardStreams(incoming, outgoing)
    stopped = asyncio.Event()

    def stop() -> None:
        stopped.set()
        streams.end()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop)
    first.watch(streams.end)
    # The agent and the client share one connection to the editor.
    editors = EditorDirectory(setup.environment)
    local = LocalAgentOptions(mcp=McpUse(wait_seconds=UNATTENDED_WAIT_SECONDS), editor_directory=editors)
    async with local_agent(setup, rule_for(setup), local) as engine:
        # A session that is continued would otherwise go on in the mode that it was left in.
        settings = {"workspace_path": str(setup.workspace), "approval_mode": setup.policy.mode.value}
        tools = EditorTools(editors, setup.workspace, setup.included_folders) if setup.use_ide else None
        server = AgentMcpServer(engine, settings, streams.write, tools, beat_seconds or BEAT_SECONDS)
        async with contextlib.aclosing(streams.chunks()) as chunks:
            await server.serve(chunks)
        if engine.running:
            first.let_go(incoming, outgoing)
            alone = asyncio.create_task(engine.runner.until_idle())
            ended = asyncio.create_task(stopped.wait())
            await asyncio.wait({alone, ended}, timeout=ALONE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in (alone, ended):
                task.cancel()
