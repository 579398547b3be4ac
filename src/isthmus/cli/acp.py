"""``isthmus acp``: the agent for an editor that speaks the Agent Client Protocol."""

import sys
from dataclasses import fields
from typing import Any

import click

from isthmus.app.setup import GivenOptions, agent_options


@click.command("acp")
@click.option("--setup", "only_setup", is_flag=True, help="Say which model is used and how to choose one, then exit.")
@agent_options
def command(only_setup: bool, **options: Any) -> int:
    """Serve the agent to an editor that speaks the Agent Client Protocol (ACP), on standard input and output.

    Editors start this command by themselves: name it in their settings as an agent. Sessions are kept in the data
    folder, so that every client can load them, also after a crash.

    \b
    isthmus acp                 what an editor starts
    isthmus acp --setup         which model would be used
    """
    from isthmus.app.event_loop import run_loop
    from isthmus.app.logs import Redaction, begin_log, secrets_of
    from isthmus.app.setup import decide, model_line, notices
    from isthmus.runtime.standard_streams import take_standard_streams

    given = GivenOptions(**{field.name: options[field.name] for field in fields(GivenOptions)})
    if only_setup:
        setup = decide(given, may_ask=True)
        click.echo(model_line(setup))
        return 0 if setup.model.provider != "demo" else 1
    incoming, outgoing = take_standard_streams()
    sys.stdout = sys.stderr
    setup = decide(given, may_ask=True)
    begin_log("text", "debug" if setup.is_debugging else "warning", Redaction(secrets_of(setup.environment)))
    for line in notices(setup):
        click.echo(f"isthmus: {line}", err=True)
    from isthmus.app.acp_front import serve_local

    run_loop(serve_local(setup, incoming, outgoing))
    return 0
