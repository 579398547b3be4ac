"""Builds and runs the A2A server (agent, users, push notifications, TLS and log) from the options of ``serve``."""

import contextlib
import logging
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from isthmus.a2a.serving.names import ServingError
from isthmus.programs.process.garbage import searched_seldom
from isthmus.programs.process.logs import Redaction, begin_log, secrets_of
from isthmus.programs.serve.serve_settings import NAMES, ServeSettings
from isthmus.programs.serve.serving_pages import completed, show_page, table_of, workbench_pages
from isthmus.programs.setup.setup import BadInputError, Setup, model_line, notices

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator

    from isthmus.a2a.options import Identity, ServerOptions
    from isthmus.a2a.server.users.users_file import UsersFile
    from isthmus.a2a.serving.telemetry import ServedTelemetry
    from isthmus.engine.port.placement import Placement
    from isthmus.engine.port.workspaces import WorkspaceRule
    from isthmus.parts.repositories.served import ServedRepositories
    from isthmus.programs.agent.hosted_agent import HostedCommand

log = logging.getLogger(__name__)


async def serve(setup: Setup, settings: ServeSettings, output: TextIO) -> None:
    """Serve until a signal. Write a line to ``output`` when the server listens, and the rest to the log.

    The server is built one thing after another, each with its end on the stack.

    Raises:
        BadInputError: options contradict each other.
        ListenError: the address or the certificate cannot be used.
    """
    from isthmus.a2a.push.sender import PushSender
    from isthmus.a2a.serving.application import Admission, ServedAgent, push_rule, served_application
    from isthmus.a2a.serving.listening import a2a_server, listening
    from isthmus.a2a.serving.telemetry import ServedTelemetry
    from isthmus.engine.port.placement import EVERY_TASK
    from isthmus.programs.serve.served_engine import ServedEngine
    from isthmus.web.pairing.links import shown_url

    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_options_refused())
        serving = settings.serving
        rule_of_pushes = push_rule(serving.pushes_to, serving.names)
        sender = PushSender(rule_of_pushes)
        pages = await workbench_pages(setup, settings) if settings.has_page else None
        placement = settings.placement or EVERY_TASK
        roots = _roots(setup, settings, placement)
        users = _users(setup, roots)
        # Before the log begins: a port that is taken is a message at the terminal.
        listener = stack.enter_context(listening(settings.host, settings.port, serving, settings.public_url))
        token_path, token = _token(setup, settings)
        telemetry = ServedTelemetry(serving.telemetry, _title(settings), names=NAMES)
        _begin_log(setup, settings, token, telemetry)

        served = _repositories(setup, settings)
        rule = _workspace_rule(setup, settings, roots, placement, served)
        runs_commands = _runs_owners_commands(settings, listener)
        view = None if pages is None else completed(pages, setup, rule, sender)
        engines = ServedEngine(
            *(setup, settings, rule, rule_of_pushes, placement, served, telemetry.work, runs_commands, pages, view)
        )
        app, engine = await stack.enter_async_context(
            served_application(
                ServedAgent(engines.open, settings.agent is None, settings.agent is None, runs_commands, pages),
                _server_options(setup, settings, token),
                serving,
                Admission(roots, table_of(users, pages)),
                telemetry,
                sender=sender,
            )
        )

        def say_ready() -> None:
            output.write(f"A2A server ready at {server.url}\n")
            output.flush()
            _log_start(setup, token_path, settings.agent, has_users=users is not None)
            if pages is not None:
                show_page(pages, settings.public_url or shown_url(server.url), output, opens=settings.opens_page)

        server = a2a_server(app, engine, listener, serving, say_ready)
        stack.enter_context(_announced(server.url, token_path, setup, rule, settings.agent))
        stack.enter_context(searched_seldom())
        await server.run_until_stopped()


@contextlib.contextmanager
def _options_refused() -> "Generator[None]":
    """Have a server that refuses its options refuse the options of the command line."""
    try:
        yield
    except ServingError as error:
        raise BadInputError(str(error)) from error


def _title(settings: ServeSettings) -> str:
    return "Isthmus" if settings.agent is None else settings.agent.title


def _roots(setup: Setup, settings: ServeSettings, placement: "Placement") -> tuple[Path, ...]:
    """Return the folders in which users may work; empty for any folder."""
    roots = (*((setup.workspace,) if settings.workspace is not None else ()), *settings.allowed_workspaces)
    return (*roots, *(folder for folder, _ in placement.folders)) if roots else ()


def _token(setup: Setup, settings: ServeSettings) -> tuple[Path, str]:
    """Return the file with the owner's token, and the token; make both if there are none."""
    from isthmus.a2a.token_file import TOKEN_FILE, ensure_token_file

    path = settings.token_file or setup.data_dir / TOKEN_FILE
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path, ensure_token_file(path)


def _begin_log(setup: Setup, settings: ServeSettings, token: str, telemetry: "ServedTelemetry") -> None:
    redaction = Redaction([token, telemetry.token, *secrets_of(setup.environment)])
    handler = begin_log(settings.log_format, "debug" if setup.is_debugging else settings.log_level, redaction)
    telemetry.warn()
    telemetry.name_in(handler)


def _repositories(setup: Setup, settings: ServeSettings) -> "ServedRepositories":
    from isthmus.journal.place import JournalPlace
    from isthmus.parts.files.task_files import TaskFiles
    from isthmus.parts.repositories.served import ServedRepositories

    journal_name = JournalPlace(TaskFiles(setup.data_dir).journal, setup.journal).name
    return ServedRepositories(setup.data_dir, setup.environment, settings.repositories, journal_name)


def _workspace_rule(
    setup: Setup,
    settings: ServeSettings,
    roots: tuple[Path, ...],
    placement: "Placement",
    repositories: "ServedRepositories",
) -> "WorkspaceRule":
    from isthmus.engine.port.workspaces import WorkspaceRule

    has_default = settings.workspace is not None or settings.agent is not None
    default = setup.workspace if has_default else None
    return WorkspaceRule(default, roots, placement.elsewhere, repositories.workspaces)


def _server_options(setup: Setup, settings: ServeSettings, token: str) -> "ServerOptions":
    from isthmus.a2a.options import ServerOptions
    from isthmus.a2a.server.users.users import Caps

    return ServerOptions(
        token=token,
        hosts=(settings.host,),
        public_url=settings.public_url,
        allowed_origins=settings.allowed_origins,
        strict_extension=settings.strict_extension,
        progress_text=settings.progress_text,
        user_tier=settings.user_tier,
        user_caps=Caps(*settings.user_caps, max_usd_a_day=settings.user_max_usd_a_day),
        identity=_identity(setup, settings),
    )


@contextlib.contextmanager
def _announced(
    url: str, token_path: Path, setup: Setup, rule: "WorkspaceRule", agent: "HostedCommand | None"
) -> "Generator[None]":
    """Announce a server of our own agent to this user's other programs, if these need no settings to reach it."""
    from isthmus.programs.serve.running_servers import RunningServer, announced

    with contextlib.ExitStack() as stack:
        if agent is None and re.match(r"http://(127\.|localhost[:/]|\[::1\])", url):
            folders = tuple(str(root.resolve()) for root in rule.roots)
            server = RunningServer(os.getpid(), url, token_path.resolve(), setup.data_dir, folders)
            try:
                stack.enter_context(announced(server))
            except OSError as error:
                log.warning("`isthmus acp` will not find this server by itself: %s", error)
        yield


def _runs_owners_commands(settings: ServeSettings, listener: "socket.socket") -> bool:
    """Return whether programs of the owner on this machine may bring MCP servers that are commands.

    A command is run unasked, so the owner must let clients run everything unasked; and nothing but this machine may
    reach the server.
    """
    from isthmus.a2a.server.listen import is_loopback

    is_free = settings.max_approval_mode == "yolo"
    return settings.agent is None and settings.public_url is None and is_loopback(listener) and is_free


def _identity(setup: Setup, settings: "ServeSettings") -> "Identity":
    from isthmus.a2a.options import TEXT_MODES, Identity

    agent, is_required = settings.agent, not settings.optional_extension
    if agent is None:
        return Identity(extension_required=is_required, input_modes=input_modes(setup.model.provider))
    described = f"{agent.title}, an agent that speaks ACP, served by Isthmus."
    modes = (*TEXT_MODES, "image/jpeg", "image/png")
    return Identity(agent.title, described, extension_required=False, input_modes=modes, default_workspace=True)


def input_modes(provider: str) -> tuple[str, ...]:
    """Return the media types that messages to a server may have if its model is from this provider."""
    from isthmus.a2a.options import TEXT_MODES
    from isthmus.models.endpoint.providers import provider_with_id

    found = provider_with_id(provider)
    return (*TEXT_MODES, *(sorted(found.media.kinds) if found is not None else ()))


def _users(setup: Setup, roots: tuple[Path, ...]) -> "UsersFile | None":
    """Return the users; None if no folder is set in which they may work.

    Raises:
        BadInputError: there are users' tokens, but no such folders.
    """
    from isthmus.a2a.server.users.users_file import FILE, UsersFile

    users = UsersFile(setup.data_dir / FILE)
    if roots:
        return users
    if names := sorted({entry.name for entry in users.read().entries.values() if entry.name}):
        raise BadInputError(
            f"there are tokens of users ({', '.join(names)}), but no folders in which they may work: give"
            " --workspace DIR or --allow-workspace DIR, or revoke them (isthmus serve token revoke NAME)"
        )
    return None


def _log_start(setup: Setup, token_path: Path, agent: "HostedCommand | None", *, has_users: bool) -> None:
    log.info("Token: %s", token_path)
    if agent is not None:
        log.info("Agent: %s", agent.shown)
        if agent.agent.unasked:
            log.warning("%s", agent.agent.unasked)
    else:
        log.info("%s", model_line(setup))
        for warning in (*notices(setup), *setup.sandbox.warnings):
            log.warning("%s", warning)
        if setup.sandbox.commands is not None:
            log.info("Sandbox: %s", setup.sandbox.level)
    if not has_users:
        log.info("Sessions may work in any folder. Users' tokens are not accepted; they need --workspace DIR.")
