"""``isthmus acp``: the agent for an editor that speaks the Agent Client Protocol."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.cli.arguments.agent_options import agent_options
from isthmus.cli.arguments.option_group import gathered
from isthmus.programs.setup.setup import GivenOptions, data_directory
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.programs.serve.running_servers import RunningServer

_FILE = click.Path(dir_okay=False, path_type=Path)


@record
class GivenFront:
    """The options of ``isthmus acp`` that do not concern its agent, as given on the command line."""

    connect: str | None
    token_file: Path | None
    ca_file: Path | None
    agent: str | None
    agent_env: tuple[str, ...]
    trust_agent: bool
    in_process: bool
    only_setup: bool
    draft_v2: bool


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
@gathered("front", GivenFront)
def command(front: GivenFront, given: GivenOptions) -> int:
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
    _check(front)
    if front.only_setup:
        return _show_setup(given)
    from isthmus.programs.process.logs import Redaction, begin_log, secrets_of
    from isthmus.runtime.standard_streams import take_standard_streams

    streams = take_standard_streams()
    sys.stdout = sys.stderr
    begin_log("text", "debug" if given.debug else "warning", Redaction(secrets_of(os.environ)))
    if front.connect is not None:
        from isthmus.a2a.token_file import client_token

        _serve_remote(front.connect, client_token(front.token_file, os.environ), front, streams)
    elif front.agent is not None:
        _serve_other(given, front, front.agent, streams)
    elif (server := None if front.in_process else _own_server(given)) is not None:
        from isthmus.a2a.token_file import read_token_file

        click.echo(f"isthmus: using the agent of your server at {server.url}", err=True)
        _serve_remote(server.url, read_token_file(server.token_file), replace(front, ca_file=None), streams)
    else:
        _serve_own(given, front, streams)
    return 0


def _check(front: GivenFront) -> None:
    """Raise UsageError for options that contradict each other."""
    if front.connect is not None and front.in_process:
        raise click.UsageError("--connect and --in-process exclude each other")
    if front.agent is not None and front.connect is not None:
        raise click.UsageError("--connect and --agent exclude each other: the server has its own agent")
    if front.agent is None and (front.agent_env or front.trust_agent):
        raise click.UsageError("--agent-env and --trust-agent belong to --agent COMMAND")


def _serve_remote(url: str, token: str | None, front: GivenFront, streams: tuple[int, int]) -> None:
    from isthmus.programs.acp.front import serve_remote
    from isthmus.programs.process.event_loop import run_loop

    run_loop(serve_remote(url, token, front.ca_file, *streams, has_draft=front.draft_v2))


def _serve_own(given: GivenOptions, front: GivenFront, streams: tuple[int, int]) -> None:
    from isthmus.programs.acp.front import serve_local
    from isthmus.programs.process.event_loop import run_loop
    from isthmus.programs.setup.setup import decide, notices

    setup = decide(given, may_ask=True)
    for line in notices(setup):
        click.echo(f"isthmus: {line}", err=True)
    run_loop(serve_local(setup, *streams, has_draft=front.draft_v2))


def _serve_other(given: GivenOptions, front: GivenFront, agent: str, streams: tuple[int, int]) -> None:
    from isthmus.programs.acp.front import serve_hosted
    from isthmus.programs.agent.hosted_agent import read_command, settle_consent
    from isthmus.programs.process.event_loop import run_loop
    from isthmus.programs.setup.setup import decide

    command = read_command(agent, front.agent_env)
    setup = decide(given, may_ask=True)
    settle_consent(command, setup.data_dir, setup.environment, is_trusted=front.trust_agent)
    if command.agent.unasked:
        click.echo(f"isthmus: {command.agent.unasked}", err=True)
    run_loop(serve_hosted(setup, command, *streams, has_draft=front.draft_v2))


def _own_server(given: GivenOptions) -> "RunningServer | None":
    """Return this user's server that runs, has the same tasks and works in this folder, if no option says more."""
    from isthmus.programs.serve.running_servers import running_servers

    if replace(given, data_dir=None, workspace=None, debug=False) != GivenOptions():
        return None
    folder = (given.workspace or Path.cwd()).resolve()
    data_dir = data_directory(given)
    return next(
        (server for server in running_servers() if server.data_dir == data_dir and server.may_work_in(folder)), None
    )


def _show_setup(given: GivenOptions) -> int:
    from isthmus.programs.setup.setup import decide, model_line

    setup = decide(given, may_ask=True)
    click.echo(model_line(setup))
    if setup.model.provider != "demo":
        return 0
    click.echo(
        "To choose a model, set GEMINI_API_KEY, ANTHROPIC_API_KEY or OPENAI_API_KEY in the environment of the editor,"
        " run Ollama on this machine, or name one: isthmus acp -m gemini:gemini-3.8-flash"
    )
    return 1
