"""``isthmus serve``: the options of the agent behind an A2A server; :mod:`isthmus.programs.serve.serving` runs it."""

import contextlib
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isthmus.cli.arguments.agent_options import agent_options
from isthmus.cli.arguments.command_groups import SuggestingGroup
from isthmus.cli.arguments.journal_option import journal_option
from isthmus.cli.serving.pair import command as pair_command
from isthmus.cli.serving.replicas import placement, replica_options, repositories
from isthmus.cli.serving.telemetry import telemetry, telemetry_options
from isthmus.cli.serving.token import command as token_command
from isthmus.cli.serving.token import tier_name
from isthmus.cli.serving.users import sign_in, users_options
from isthmus.programs.process.event_loop import run_loop
from isthmus.programs.process.logs import FORMATS, LEVELS
from isthmus.programs.setup.setup import APPROVAL_MODES, BadInputError, GivenOptions, decide

if TYPE_CHECKING:
    from isthmus.programs.agent.hosted_agent import HostedCommand
    from isthmus.programs.serve.serve_settings import ServeSettings

_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(
    "serve",
    cls=SuggestingGroup,
    invoke_without_command=True,
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on. Default: any free one.")
@click.option(
    "--token-file",
    type=_FILE,
    metavar="FILE",
    help="File with your own bearer token; created, readable by you only, if missing. Default: in the data folder.",
)
@click.option(
    "--public-url",
    metavar="URL",
    help="The URL under which clients reach the server, for its card. Its path is served.",
)
@click.option(
    "--allow-origin",
    multiple=True,
    metavar="ORIGIN",
    help="Take requests of web pages of this origin, e.g. https://app.example.org; they need a token. Repeatable.",
)
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
    help="A further folder in and below which sessions may work. Repeatable.",
)
@click.option(
    "--allow-push-to",
    multiple=True,
    metavar="HOST|NETWORK",
    help="Allow push notifications to this host, address or network even if it is not public. Repeatable.",
)
@click.option(
    "--user-max-tasks", type=click.IntRange(min=1), default=1000, metavar="N", help="Unfinished tasks per user."
)
@click.option("--user-max-running", type=click.IntRange(min=1), default=8, metavar="N", help="Tasks at work per user.")
@click.option(
    "--user-max-open", type=click.IntRange(min=1), default=64, metavar="N", help="Open requests and streams per user."
)
@click.option(
    "--user-max-request", type=click.IntRange(min=1000), default=20_000_000, metavar="BYTES", help="Size of a request."
)
@click.option(
    "--allow-client-mcp",
    is_flag=True,
    help="Let clients add MCP servers of their own at any URL, also on this machine and its network.",
)
@click.option(
    "--max-approval-mode",
    type=click.Choice(APPROVAL_MODES),
    default="yolo",
    show_default=True,
    help="The least restrictive approval mode that clients may request; below yolo they cannot allow tools either.",
)
@click.option(
    "--user-tier",
    metavar="NAME",
    callback=tier_name,
    help="The tier of the users, sent to clients as user_tier.",
)
@click.option("--ui", is_flag=True, help="Serve the workbench, too: a page for browsers at /ui/.")
@click.option("--strict-extension", is_flag=True, help="Refuse clients that do not activate the extension.")
@click.option(
    "--optional-extension",
    is_flag=True,
    help="Do not require the extension in the agent card: some agent frameworks refuse a card that does.",
)
@click.option(
    "--progress-text",
    is_flag=True,
    help="Send clients without the extension the agent's texts while it works, too. Its answer is an artifact.",
)
@click.option("--log-format", type=click.Choice(FORMATS), default="text", help="The format of the log on stderr.")
@click.option("--log-level", type=click.Choice(LEVELS), default="info", help="info has a line for each request.")
@click.option(
    "--agent",
    metavar="COMMAND|acp:ID",
    help="Serve another agent that speaks ACP, started by this command, e.g. 'gemini --acp', or acp:ID for one of the"
    " public registry. You are asked once.",
)
@click.option(
    "--agent-env",
    multiple=True,
    metavar="NAME",
    help="A further environment variable that this agent gets. Repeatable.",
)
@click.option("--trust-agent", is_flag=True, help="Run the command of --agent without asking, now and later.")
@users_options
@replica_options
@telemetry_options
@journal_option
@agent_options
@click.pass_context
def command(context: click.Context, given: GivenOptions, **options: Any) -> None:
    """Serve the agent to A2A clients, with the development-tool extension.

    Prints `A2A server ready at URL` when it listens. Tasks are stored in the data folder: one that waits for an answer
    survives any crash, and any client with the token may answer it. With --workspace, sessions may work only in that
    folder and below; without, wherever their AgentSettings say.

    Create tokens for other users with `isthmus serve token add NAME`; each user sees only their own tasks. To be
    reached from other machines the server needs TLS: --tls-cert and --tls-key, or a proxy with --public-url https://...

    \b
    isthmus serve --port 8080 --token-file ~/isthmus-token --workspace ~/project
    isthmus connect http://127.0.0.1:8080/ --token-file ~/isthmus-token
    isthmus serve --agent 'gemini --acp' --workspace ~/project
    """
    if context.invoked_subcommand is not None:
        return
    from isthmus.programs.serve.serving import serve

    if options["strict_extension"] and options["optional_extension"]:
        raise click.UsageError("--strict-extension and --optional-extension contradict each other: give one of them")
    settings = _settings(options, given)
    setup = replace(decide(given, may_ask=True), journal=options["journal"])
    if settings.agent is not None:
        if settings.repositories:
            raise BadInputError(
                "--repository cannot be used with --agent: the files of a session are pushed after each tool call, and"
                " only Isthmus's own agent tells of its calls in time. Leave out --repository and give it a clone"
                " of the repository by --workspace DIR, or leave out --agent"
            )
        from isthmus.programs.agent.hosted_agent import settle_consent

        settle_consent(settings.agent, setup.data_dir, setup.environment, is_trusted=options["trust_agent"])
    with contextlib.suppress(KeyboardInterrupt):
        run_loop(serve(setup, settings, sys.stdout))


def _settings(options: dict[str, Any], given: GivenOptions) -> "ServeSettings":
    """Return the settings of the server; raise BadInputError for an option that is invalid."""
    from isthmus.programs.serve.serve_settings import ServeSettings

    return ServeSettings(
        host=options["host"],
        port=options["port"],
        token_file=options["token_file"],
        public_url=_public_url(options["public_url"]),
        allowed_origins=_origins(options["allow_origin"]),
        certificate=_certificate(options["tls_cert"], options["tls_key"]),
        insecure_http=options["insecure_http"],
        workspace=given.workspace,
        allowed_workspaces=_folders(options["allow_workspace"]),
        allowed_pushes=options["allow_push_to"],
        user_caps=(
            options["user_max_tasks"],
            options["user_max_running"],
            options["user_max_open"],
            options["user_max_request"],
            options["user_max_requests_a_minute"],
            options["user_max_tokens_a_day"],
        ),
        user_max_usd_a_day=options["user_max_usd_a_day"],
        allow_client_mcp=options["allow_client_mcp"],
        max_approval_mode=options["max_approval_mode"],
        user_tier=options["user_tier"],
        strict_extension=options["strict_extension"],
        optional_extension=options["optional_extension"],
        progress_text=options["progress_text"],
        log_format=options["log_format"],
        log_level=options["log_level"],
        agent=_agent(options["agent"], options["agent_env"], is_trusted=options["trust_agent"]),
        has_page=options["ui"],
        sign_in=sign_in(options),
        audit_log=options["audit_log"],
        placement=placement(options),
        repositories=repositories(options),
        drain_seconds=options["drain_seconds"],
        telemetry=telemetry(options),
    )


command.add_command(token_command)
command.add_command(pair_command)


def _agent(command: str | None, variables: tuple[str, ...], *, is_trusted: bool) -> "HostedCommand | None":
    if command is None:
        if variables or is_trusted:
            raise BadInputError("--agent-env and --trust-agent belong to --agent COMMAND")
        return None
    from isthmus.programs.agent.hosted_agent import read_command

    return read_command(command, variables)


def _public_url(url: str | None) -> str | None:
    if url is not None and re.fullmatch(r"https?://[^\s/?#]+(/\S*)?", url) is None:
        raise BadInputError(f"--public-url {url!r}: expected a URL such as https://agent.example.org/")
    return url


def _origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    from isthmus.a2a.server.http.cross_origin import OriginError, read_origin

    try:
        return tuple(read_origin(each) for each in origins)
    except OriginError as error:
        raise BadInputError(f"--allow-origin {error}") from error


def _certificate(file: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    if (file is None) != (key is None):
        raise BadInputError("--tls-cert and --tls-key belong together; give both files")
    return (file, key) if file is not None and key is not None else None


def _folders(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    for folder in folders:
        if not folder.is_dir():
            raise BadInputError(f"--allow-workspace: {folder} is not a folder; expected an existing one")
    return tuple(folder.resolve() for folder in folders)
