"""``isthmus connect``: a conversation with an agent behind an A2A server."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.cli.arguments.option_group import gathered
from isthmus.cli.arguments.request_options import prompt_options
from isthmus.encoding.codec import JsonObject
from isthmus.files.locations import absolute
from isthmus.programs.process.event_loop import run_loop
from isthmus.programs.process.logs import warnings_announced
from isthmus.programs.setup.setup import BadInputError
from isthmus.programs.terminal.run_request import GivenRequest, RunRequest, run_request

if TYPE_CHECKING:
    from isthmus.a2a.client.discovery import ServerProfile
    from isthmus.a2a.client.remote_agent import RemoteAgent


@click.command("connect")
@click.argument("url")
@click.argument("words", nargs=-1, metavar="[PROMPT]...")
@prompt_options
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File with the server's bearer token. Default: the variable ISTHMUS_A2A_TOKEN.",
)
@click.option(
    "--ca-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="CA certificates (PEM) for an https server with its own. Default: the variable SSL_CERT_FILE.",
)
@click.option(
    "--workspace",
    metavar="DIR",
    help="The agent's folder on the server's machine. A name without a leading / is relative to this folder."
    " Default: the server's own folder if it announces one, else this folder's path.",
)
@click.option(
    "-r",
    "--resume",
    metavar="[latest|ID]",
    is_flag=False,
    flag_value="latest",
    help="Continue an earlier session; a question that waits is asked again.",
)
@click.option("-c", "--continue", "continues", is_flag=True, help="Continue the latest session.")
@click.option("--list-sessions", is_flag=True, help="List the server's sessions and exit.")
@gathered("given", GivenRequest)
def command(
    url: str,
    given: GivenRequest,
    token_file: Path | None,
    ca_file: Path | None,
    workspace: str | None,
) -> int:
    """Talk to the agent at URL, as `isthmus` does with the local one.

    The token is not an argument, because other users could read the command line: name its file, or set
    ISTHMUS_A2A_TOKEN.
    """
    request = run_request(given, is_typed=sys.stdin.isatty())
    workspace = None if workspace is None else absolute(workspace)
    if request.prompt is not None and not request.prompt.strip() and sys.stdin.isatty():
        raise BadInputError('The prompt is empty. Give one with -p "TEXT".')
    return run_loop(_connect(url, request, token_file, ca_file, workspace))


async def _connect(
    url: str, request: RunRequest, token_file: Path | None, ca_file: Path | None, workspace: str | None
) -> int:
    from isthmus.a2a.client.remote_agent import RemoteAgent
    from isthmus.a2a.token_file import client_token
    from isthmus.cli.run import print_sessions

    agent = await RemoteAgent.connect(url, client_token(token_file, os.environ), ca_file=ca_file)
    try:
        if request.list_sessions:
            return await print_sessions(agent, workspace)
        folder = workspace or (None if agent.profile.has_workspace else str(Path.cwd()))
        if request.is_headless:
            return await _headless(agent, request, folder, workspace)
        files = (("--token-file", token_file), ("--ca-file", ca_file))
        file_options = "".join(f" {name} {shlex.quote(str(file))}" for name, file in files if file is not None)
        from isthmus.programs.setup.terminal_settings import keep_theme, theme_of_user
        from isthmus.terminal.interactive.interactive import run_interactive
        from isthmus.terminal.interactive.interactive_options import InteractiveOptions

        options = InteractiveOptions(
            settings=_settings(folder),
            workspace=workspace,
            resume=request.resume,
            first_prompt=request.first_prompt,
            heading=(" · ".join(filter(None, (f"Connected to {agent.url}", folder))), "/help for help"),
            command=f"isthmus connect {url}{file_options}",
            theme=theme_of_user(),
            keep_theme=keep_theme,
        )
        with warnings_announced(options.announcements, os.environ):
            return await run_interactive(agent, options)
    finally:
        await agent.aclose()


async def _headless(agent: "RemoteAgent", request: RunRequest, folder: str | None, workspace: str | None) -> int:
    from isthmus.cli.run import answer_schema, run_without_user, whole_prompt
    from isthmus.terminal.headless.headless import HeadlessOptions

    options = HeadlessOptions(
        "" if request.takes_messages else whole_prompt(request.prompt),
        request.output_format,
        settings=_settings(folder),
        resume=request.resume,
        workspace=workspace,
        permission_hint=_permission_hint(agent.profile),
        schema=answer_schema(request.output_schema),
    )
    return await run_without_user(agent, options, request)


def _settings(folder: str | None) -> JsonObject | None:
    return None if folder is None else {"workspace_path": folder}


def _permission_hint(offer: "ServerProfile") -> str:
    """Return advice for a call that was refused; names options of `isthmus serve` only if the server is one."""
    if offer.takes_messages_once and not offer.has_workspace:
        return "start the server with --approval-mode or --allowed-tools, or answer without -p"
    return "answer it without -p"
