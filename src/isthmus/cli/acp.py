"""``isthmus acp``: the agent for an editor that speaks the Agent Client Protocol."""

import os
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isthmus.app.setup import GivenOptions, agent_options, data_directory

if TYPE_CHECKING:
    from isthmus.app.running_servers import RunningServer

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("acp")
@click.option("--connect", metavar="URL", help="Use the agent behind this A2A server.")
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    help="With --connect: file with the server's bearer token. Default: the variable ISTHMUS_A2A_TOKEN.",
)
@click.option(
    "--ca-file",
    type=_FILE,
    metavar="FILE",
    help="With --connect: CA certificates (PEM) for an https server with its own.",
)
@click.option(
    "--agent",
    metavar="COMMAND|acp:ID",
    help="Serve another agent that speaks ACP, started by this command, e.g. 'gemini --acp', or acp:ID for one of the"
    " public registry. Its sessions are kept, and its questions can be answered elsewhere.",
)
@click.option("--agent-env", multiple=True, metavar="NAME", help="A further variable that this agent gets. Repeatable.")
@click.option("--trust-agent", is_flag=True, help="Run the command of --agent, now and later; needed the first time.")
@click.option("--in-process", is_flag=True, help="Run the agent in this process, even if your `isthmus serve` runs.")
@click.option("--setup", "only_setup", is_flag=True, help="Say which model is used and how to choose one, then exit.")
@click.option(
    "--draft-v2",
    is_flag=True,
    help="Also speak version 2 of the protocol, as drafted on 2 November 2026, with clients that ask for it.",
)
@agent_options
def command(
    connect: str | None,
    token_file: Path | None,
    ca_file: Path | None,
    agent: str | None,
    agent_env: tuple[str, ...],
    trust_agent: bool,
    in_process: bool,
    only_setup: bool,
    draft_v2: bool,
    **options: Any,
) -> int:
    """Serve the agent to an editor that speaks the Agent Client Protocol (ACP), on standard input and output.

    Editors start this command by themselves: name it in their settings as an agent. Sessions are stored, and every
    client can load them, also after a crash. If your `isthmus serve` runs on this machine, its agent is used, unless
    other options than these say how the agent works: a turn then goes on when the editor ends, and its questions wait.

    \b
    isthmus acp                                 what an editor starts
    isthmus acp -m gemini:gemini-3.8-flash      with this model
    isthmus acp --connect https://agent.example.org/ --token-file ~/token
    isthmus acp --agent acp:gemini --trust-agent
    """
    given = GivenOptions(**{field.name: options[field.name] for field in fields(GivenOptions)})
    if connect is not None and in_process:
        raise click.UsageError("--connect and --in-process exclude each other")
    if agent is not None and connect is not None:
        raise click.UsageError("--connect and --agent exclude each other: the server has its own agent")
    if agent is None and (agent_env or trust_agent):
        raise click.UsageError("--agent-env and --trust-agent belong to --agent COMMAND")
    if only_setup:
        return _show_setup(given)
    from isthmus.app.event_loop import run_loop
    from isthmus.app.logs import Redaction, begin_log, secrets_of
    from isthmus.runtime.standard_streams import take_standard_streams

    streams = take_standard_streams()
    sys.stdout = sys.stderr
    begin_log("text", "debug" if given.debug else "warning", Redaction(secrets_of(os.environ)))
    if connect is not None:
        from isthmus.a2a.token_file import client_token
        from isthmus.app.acp_front import serve_remote

        run_loop(serve_remote(connect, client_token(token_file, os.environ), ca_file, *streams, has_draft=draft_v2))
        return 0
    if agent is not None:
        return _serve_other(given, agent, agent_env, streams, is_trusted=trust_agent, has_draft=draft_v2)
    if (server := None if in_process else _own_server(given)) is not None:
        from isthmus.a2a.token_file import read_token_file
        from isthmus.app.acp_front import serve_remote

        click.echo(f"isthmus: using the agent of your server at {server.url}", err=True)
        run_loop(serve_remote(server.url, read_token_file(server.token_file), None, *streams, has_draft=draft_v2))
        return 0
    from isthmus.app.acp_front import serve_local
    from isthmus.app.setup import decide, notices

    setup = decide(given, may_ask=True)
    for line in notices(setup):
        click.echo(f"isthmus: {line}", err=True)
    run_loop(serve_local(setup, *streams, has_draft=draft_v2))
    return 0


def _serve_other(
    given: GivenOptions,
    agent: str,
    variables: tuple[str, ...],
    streams: tuple[int, int],
    *,
    is_trusted: bool,
    has_draft: bool,
) -> int:
    from isthmus.app.acp_front import serve_hosted
    from isthmus.app.acp_serving import read_command, settle_consent
    from isthmus.app.event_loop import run_loop
    from isthmus.app.setup import decide

    command = read_command(agent, variables)
    setup = decide(given, may_ask=True)
    settle_consent(command, setup.data_dir, setup.environment, is_trusted=is_trusted)
    if command.agent.unasked:
        click.echo(f"isthmus: {command.agent.unasked}", err=True)
    run_loop(serve_hosted(setup, command, *streams, has_draft=has_draft))
    return 0


def _own_server(given: GivenOptions) -> "RunningServer | None":
    """Return this user's server that runs, has the same tasks and works in this folder, if no option says more."""
    from isthmus.app.running_servers import running_servers

    if replace(given, data_dir=None, workspace=None, debug=False) != GivenOptions():
        return None
    folder = (given.workspace or Path.cwd()).resolve()
    data_dir = data_directory(given)
    return next(
        (server for server in running_servers() if server.data_dir == data_dir and server.may_work_in(folder)), None
    )


def _show_setup(given: GivenOptions) -> int:
    from isthmus.app.setup import decide, model_line

    setup = decide(given, may_ask=True)
    click.echo(model_line(setup))
    if setup.model.provider != "demo":
        return 0
    click.echo(
        "To choose a model, set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment of the editor,"
        " run Ollama on this machine, or name one: isthmus acp -m gemini:gemini-3.8-flash"
    )
    return 1
