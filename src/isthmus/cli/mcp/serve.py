"""``isthmus mcp serve``: the agent as an MCP server on standard input and output."""

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from isthmus.app.setup import GivenOptions, agent_options

if TYPE_CHECKING:
    from isthmus.app.setup import Setup


@click.command("serve")
@agent_options
def command(**options: Any) -> int:
    """Serve the agent as an MCP server on standard input and output, for other agents and editors.

    The tool run_task gives the agent a task in this folder and returns the answer. What the agent asks goes to the
    client's user (elicitation). A client that cannot ask gets an agent that may only do what --approval-mode and
    --allowed-tools allow: the rest is refused.

    The tools get_editor_context, get_diagnostics, open_file and review_edit use the editor that has the folder open.
    review_edit shows an edit there and waits up to ten minutes for the user; the client writes what was accepted.
    With --no-ide they are not offered.

    \b
    claude mcp add isthmus -- isthmus mcp serve --workspace ~/project
    """
    from isthmus.app.event_loop import run_loop
    from isthmus.app.logs import Redaction, begin_log, secrets_of
    from isthmus.app.setup import decide, notices
    from isthmus.runtime.standard_streams import take_standard_streams
    from isthmus.text.visible import visible_line

    given = GivenOptions(**{field.name: options[field.name] for field in fields(GivenOptions)})
    streams = take_standard_streams()
    sys.stdout = sys.stderr
    begin_log("text", "debug" if given.debug else "warning", Redaction(secrets_of(os.environ)))
    setup = decide(given, may_ask=True)
    for line in notices(setup):
        click.echo(f"isthmus: {visible_line(line)}", err=True)
    run_loop(_serve(setup, *streams))
    return 0


async def _serve(setup: "Setup", incoming: int, outgoing: int) -> None:
    from isthmus.app.editor_directory import EditorDirectory
    from isthmus.app.local_agent import UNATTENDED_WAIT_SECONDS, McpUse, local_agent, rule_for
    from isthmus.app.mcp_editor_tools import EditorTools
    from isthmus.app.mcp_serving import AgentMcpServer
    from isthmus.runtime.standard_streams import StandardStreams

    streams = StandardStreams(incoming, outgoing)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, streams.end)
    # The agent and the client share one connection to the editor.
    editors = EditorDirectory(setup.environment)
    use = McpUse(wait_seconds=UNATTENDED_WAIT_SECONDS)
    async with local_agent(setup, rule_for(setup), mcp_use=use, editor_directory=editors) as engine:
        # A session that is continued would otherwise go on in the mode that it was left in.
        settings = {"workspace_path": str(setup.workspace), "approval_mode": setup.policy.mode.value}
        tools = EditorTools(editors, setup.workspace, setup.included_folders) if setup.use_ide else None
        server = AgentMcpServer(engine, settings, streams.write, tools)
        async with contextlib.aclosing(streams.chunks()) as chunks:
            await server.serve(chunks)
