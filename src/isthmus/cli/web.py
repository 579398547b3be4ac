"""``isthmus web``: serves the agent with the workbench on this machine, and opens it in the browser."""

import contextlib
import sys
from dataclasses import replace
from pathlib import Path

import click

from isthmus.cli.arguments.agent_options import agent_options
from isthmus.cli.arguments.journal_option import journal_option
from isthmus.programs.process.event_loop import run_loop
from isthmus.programs.setup.setup import GivenOptions, decide


@click.command("web")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on. Default: any free one.")
@click.option("--open/--no-open", "opens", default=True, help="Open the page in your browser, which is the default.")
@journal_option
@agent_options
def command(port: int, opens: bool, journal: str, given: GivenOptions) -> None:
    """Work with the agent in a browser: an inbox of all that waits for you, tasks, reviews of edits.

    Serves this folder, or the one of --workspace, to this machine alone, and prints a link that lets one browser in. To
    reach the page from other devices, see `isthmus serve --ui`.

    \b
    isthmus web
    isthmus web --workspace ~/project --no-open
    """
    from isthmus.programs.serve.serve_settings import ServeSettings
    from isthmus.programs.serve.serving import serve

    workspace = (given.workspace or Path.cwd()).resolve()
    given = replace(given, workspace=workspace)
    settings = ServeSettings(
        host="127.0.0.1",
        port=port,
        token_file=None,
        public_url=None,
        certificate=None,
        insecure_http=False,
        workspace=workspace,
        allowed_workspaces=(),
        allowed_pushes=(),
        user_caps=(1000, 8, 64, 20_000_000),
        allow_client_mcp=False,
        max_approval_mode="yolo",
        user_tier=None,
        strict_extension=False,
        optional_extension=False,
        progress_text=False,
        log_format="text",
        log_level="warning",
        has_page=True,
        opens_page=opens,
    )
    with contextlib.suppress(KeyboardInterrupt):
        run_loop(serve(replace(decide(given, may_ask=True), journal=journal), settings, sys.stdout))
