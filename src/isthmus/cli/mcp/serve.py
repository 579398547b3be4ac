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

    It has one tool, run_task, which gives the agent a task in this folder and returns the answer. What the agent asks
    goes to the client's user (elicitation). A client that cannot ask gets an agent that may only do what
    --approval-mode and --allowed-tools allow: the rest is refused.

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
    from isthmus.app.local_agent import UNATTENDED_WAIT_SECONDS, McpUse, local_agent, rule_for
    from isthmus.app.mcp_serving import AgentMcpServer
    from isthmus.runtime.standard_streams import StandardStreams

    streams = StandardStreams(incoming, outgoing)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, streams.end)
    async with local_agent(setup, rule_for(setup), mcp_use=McpUse(wait_seconds=UNATTENDED_WAIT_SECONDS)) as engine:
        # A session that is continued would otherwise go on in the mode that it was left in.
        settings = {"workspace_path": str(setup.workspace), "approval_mode": setup.policy.mode.value}
        server = AgentMcpServer(engine, settings, streams.write)
        async with contextlib.aclosing(streams.chunks()) as chunks:
            await server.serve(chunks)
