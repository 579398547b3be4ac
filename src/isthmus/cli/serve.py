"""``isthmus serve``: the agent behind an A2A server. Here are its options; :mod:`isthmus.app.serving` runs it."""

import contextlib
import re
import sys
from pathlib import Path
from typing import Any

import click

from isthmus.app.event_loop import run as run_loop
from isthmus.app.logs import FORMATS, LEVELS
from isthmus.app.setup import APPROVAL_MODES, BadInputError, GivenOptions, agent_options, decide
from isthmus.cli.serve_token import command as token_command
from isthmus.cli.serve_token import tier_name

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(
    "serve",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on. Default: any free one.")
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    help="Holds your own bearer token; made, for you alone, when missing. Default: in the data folder.",
)
@click.option("--public-url", metavar="URL", help="The URL that clients reach the server by, for its card.")
@click.option(
    "--tls-cert", type=_FILE, metavar="FILE", help="Serve https with this certificate (PEM, issuers after it)."
)
@click.option("--tls-key", type=_FILE, metavar="FILE", help="The certificate's private key (PEM, without a password).")
@click.option(
    "--insecure-http", is_flag=True, help="Serve plain http to other machines: tokens can be read on the way."
)
@click.option(
    "--allow-workspace",
    type=_FOLDER,
    multiple=True,
    metavar="DIR",
    help="A further folder that sessions may work in, and below. Repeatable.",
)
@click.option(
    "--allow-push-to",
    multiple=True,
    metavar="HOST|NETWORK",
    help="Let push notifications go to this host, or this address or network, though not public. Repeatable.",
)
@click.option(
    "--user-max-tasks", type=click.IntRange(min=1), default=1000, metavar="N", help="Unfinished tasks of a user."
)
@click.option("--user-max-running", type=click.IntRange(min=1), default=8, metavar="N", help="Working tasks of a user.")
@click.option(
    "--user-max-open", type=click.IntRange(min=1), default=64, metavar="N", help="Requests and streams a user has open."
)
@click.option(
    "--user-max-request", type=click.IntRange(min=1000), default=20_000_000, metavar="BYTES", help="A user's request."
)
@click.option(
    "--allow-client-mcp",
    is_flag=True,
    help="Let clients bring MCP servers of their own by any URL, also of this machine and its network.",
)
@click.option(
    "--max-approval-mode",
    type=click.Choice(APPROVAL_MODES),
    default="yolo",
    show_default=True,
    help="The freest approval mode that clients may ask for; below yolo they may not allow tools either.",
)
@click.option(
    "--user-tier",
    metavar="NAME",
    callback=tier_name,
    help="The tier of the users, which events tell them.",
)
@click.option("--strict-extension", is_flag=True, help="Refuse clients that do not activate the extension.")
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="How the log on stderr looks.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="info has a line for each request.")
@agent_options
@click.pass_context
def command(context: click.Context, **options: Any) -> None:
    """Serve the agent to A2A clients, with the development-tool extension.

    Prints `A2A server ready at URL` when it listens. Tasks are kept in the data folder: one that waits for an answer
    survives any crash, and any client with the token may answer it. With --workspace, sessions may work in that folder
    and below only; without, wherever their AgentSettings say.

    Other people get tokens by `isthmus serve token add NAME`; each sees his own tasks alone. To be reached from other
    machines the server needs TLS: --tls-cert and --tls-key, or a proxy with --public-url https://...

    \b
    isthmus serve --port 8080 --token-file ~/isthmus-token --workspace ~/project
    isthmus connect http://127.0.0.1:8080/ --token-file ~/isthmus-token
    """
    if context.invoked_subcommand is not None:
        return
    from isthmus.app.serving import ServeSettings, serve

    own = {name: options.pop(name) for name in _OWN}
    given = GivenOptions(**options)
    settings = ServeSettings(
        host=own["host"],
        port=own["port"],
        token_file=own["token_file"],
        public_url=_public_url(own["public_url"]),
        certificate=_certificate(own["tls_cert"], own["tls_key"]),
        insecure_http=own["insecure_http"],
        workspace=given.workspace,
        allowed_workspaces=_folders(own["allow_workspace"]),
        allowed_pushes=own["allow_push_to"],
        user_caps=(own["user_max_tasks"], own["user_max_running"], own["user_max_open"], own["user_max_request"]),
        allow_client_mcp=own["allow_client_mcp"],
        max_approval_mode=own["max_approval_mode"],
        user_tier=own["user_tier"],
        strict_extension=own["strict_extension"],
        log_format=own["log_format"],
        log_level=own["log_level"],
    )
    with contextlib.suppress(KeyboardInterrupt):
        run_loop(serve(decide(given, may_ask=True), settings, sys.stdout))


command.add_command(token_command)

_OWN = (
    "host",
    "port",
    "token_file",
    "public_url",
    "tls_cert",
    "tls_key",
    "insecure_http",
    "allow_workspace",
    "allow_push_to",
    "user_max_tasks",
    "user_max_running",
    "user_max_open",
    "user_max_request",
    "allow_client_mcp",
    "max_approval_mode",
    "user_tier",
    "strict_extension",
    "log_format",
    "log_level",
)


def _public_url(url: str | None) -> str | None:
    if url is not None and re.fullmatch(r"https?://[^\s/?#]+(/\S*)?", url) is None:
        raise BadInputError(f"--public-url {url!r}: expected a URL such as https://agent.example.org/")
    return url


def _certificate(file: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if (file is None) != (key is None):
        raise BadInputError("--tls-cert and --tls-key go together: expected the files of both")
    return (file, key) if file is not None and key is not None else None


def _folders(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    for folder in folders:
        if not folder.is_dir():
            raise BadInputError(f"--allow-workspace {folder} is not a folder")
    return tuple(folder.resolve() for folder in folders)
