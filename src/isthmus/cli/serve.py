"""``isthmus serve``: the agent behind an A2A server."""

import asyncio
import contextlib
import logging
import re
import sys
from pathlib import Path
from typing import Any

import click

from isthmus.cli.options import BadInputError, GivenOptions, Setup, agent_options, decide

TOKEN_FILE = "serve-token"  # noqa: S105 - the name of a file


@click.command("serve", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on. Default: any free one.")
@click.option(
    "--token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Holds the bearer token that clients send; made, for you alone, when missing. Default: in the data folder.",
)
@click.option("--public-url", metavar="URL", help="The URL that clients reach the server by, for its card.")
@click.option("--strict-extension", is_flag=True, help="Refuse clients that do not activate the extension.")
@agent_options
def command(
    host: str, port: int, token_file: Path | None, public_url: str | None, strict_extension: bool, **options: Any
) -> None:
    """Serve the agent to A2A clients, with the development-tool extension.

    Prints `A2A server ready at URL` when it listens. Tasks are kept in the data folder: one that waits for an answer
    survives any crash, and any client with the token may answer it. With --workspace, sessions may work in that folder
    and below only; without, wherever their AgentSettings say.

    \b
    isthmus serve --port 8080 --token-file ~/isthmus-token --workspace ~/project
    isthmus connect http://127.0.0.1:8080/ --token-file ~/isthmus-token
    """
    if public_url is not None and re.fullmatch(r"https?://[^\s/?#]+(/\S*)?", public_url) is None:
        raise BadInputError(f"--public-url {public_url!r}: expected a URL such as https://agent.example.org/")
    agent = GivenOptions(**options)
    setup = decide(agent, may_ask=True)
    token_path = token_file or setup.data_dir / TOKEN_FILE
    roots = (setup.workspace,) if agent.workspace is not None else ()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for chatty in ("httpx2", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(setup, roots, host, port, token_path, public_url, strict_extension))


async def _serve(
    setup: Setup,
    roots: tuple[Path, ...],
    host: str,
    port: int,
    token_path: Path,
    public_url: str | None,
    strict_extension: bool,
) -> None:
    from isthmus.a2a.auth import ensure_token_file
    from isthmus.a2a.listen import Server, bind
    from isthmus.a2a.options import ServerOptions
    from isthmus.a2a.server import application
    from isthmus.cli.local_agent import local_agent
    from isthmus.cli.run import model_line
    from isthmus.engine.workspaces import WorkspaceRule

    listener = bind(host, port)
    try:
        token_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        token = ensure_token_file(token_path)
        rule = WorkspaceRule(default=setup.workspace if roots else None, roots=roots)
        async with local_agent(setup, rule, takes_over=True) as engine:
            options = ServerOptions(
                token=token, hosts=(host,), public_url=public_url, strict_extension=strict_extension
            )
            server = Server(application(engine, options), listener)
            sys.stdout.write(f"A2A server ready at {server.url}\n")
            sys.stdout.flush()
            sys.stderr.write(f"Token: {token_path}\n{model_line(setup)}\n")
            await server.run_until_stopped()
    finally:
        listener.close()
