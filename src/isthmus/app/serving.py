"""Builds and runs the A2A server (agent, users, push notifications, TLS and log) from the options of ``serve``."""

import contextlib
import logging
import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from isthmus.a2a.serving.names import ServingError
from isthmus.app.logs import Redaction, begin_log, secrets_of
from isthmus.app.serve_settings import NAMES, ServeSettings
from isthmus.app.serving_pages import completed, notifying, show_page, table_of, watch_journal, workbench_pages
from isthmus.app.setup import BadInputError, Setup, model_line, notices

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Callable, Generator

    from isthmus.a2a.options import Identity, ServerOptions
    from isthmus.a2a.push.targets import PushRule
    from isthmus.a2a.server.users_file import UsersFile
    from isthmus.agent.resources import AgentResources
    from isthmus.app.acp_serving import HostedCommand
    from isthmus.app.served_repositories import ServedRepositories
    from isthmus.engine import Engine
    from isthmus.engine.placement import Placement
    from isthmus.engine.workspaces import WorkspaceRule
    from isthmus.telemetry import Telemetry
    from isthmus.web.pages import WorkbenchPages

log = logging.getLogger(__name__)


async def serve(setup: Setup, settings: ServeSettings, output: TextIO) -> None:
    """Serve until a signal. Write a line to ``output`` when the server listens, and the rest to the log.

    Raises:
        BadInputError: options contradict each other.
        ListenError: the address or the certificate cannot be used.
    """
    try:
        await _serve(setup, settings, output)
    except ServingError as error:
        raise BadInputError(str(error)) from error


async def _serve(setup: Setup, settings: ServeSettings, output: TextIO) -> None:
    from isthmus.a2a.push.sender import PushSender
    from isthmus.a2a.serving.application import Admission, ServedAgent, push_rule, served_application
    from isthmus.a2a.serving.listening import a2a_server, listening
    from isthmus.a2a.serving.telemetry import ServedTelemetry
    from isthmus.a2a.token_file import TOKEN_FILE, ensure_token_file
    from isthmus.app.served_repositories import ServedRepositories
    from isthmus.app.task_files import TaskFiles
    from isthmus.engine.placement import EVERY_TASK
    from isthmus.engine.workspaces import WorkspaceRule
    from isthmus.journal.place import JournalPlace
    from isthmus.web.links import shown_url

    serving = settings.serving
    rule_of_pushes = push_rule(serving.pushes_to, serving.names)
    sender = PushSender(rule_of_pushes)
    pages = await workbench_pages(setup, settings) if settings.has_page else None
    token_path = settings.token_file or setup.data_dir / TOKEN_FILE
    placement = settings.placement or EVERY_TASK
    roots = (*((setup.workspace,) if settings.workspace is not None else ()), *settings.allowed_workspaces)
    if roots:
        roots += tuple(folder for folder, _ in placement.folders)
    users = _users(setup, roots)
    with listening(settings.host, settings.port, serving, settings.public_url) as listener:
        token_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        token = ensure_token_file(token_path)
        title = "Isthmus" if settings.agent is None else settings.agent.title
        telemetry = ServedTelemetry(serving.telemetry, title, names=NAMES)
        redaction = Redaction([token, telemetry.token, *secrets_of(setup.environment)])
        handler = begin_log(settings.log_format, "debug" if setup.is_debugging else settings.log_level, redaction)
        telemetry.warn()
        telemetry.name_in(handler)
        has_default = settings.workspace is not None or settings.agent is not None
        journal_name = JournalPlace(TaskFiles(setup.data_dir).journal, setup.journal).name
        served = ServedRepositories(setup.data_dir, setup.environment, settings.repositories, journal_name)
        default = setup.workspace if has_default else None
        rule = WorkspaceRule(default, roots, placement.elsewhere, served.workspaces)
        runs_commands = _runs_owners_commands(settings, listener)
        view = None if pages is None else completed(pages, setup, rule, sender)
        open_engine = partial(
            _engine,
            *(setup, settings, rule, rule_of_pushes, view and view.begin, placement, served, runs_commands),
            telemetry.work,
            pages,
        )
        agent = ServedAgent(open_engine, settings.agent is None, runs_commands, pages)
        options = _server_options(setup, settings, token)
        admission = Admission(roots, table_of(users, pages))
        async with served_application(agent, options, serving, admission, telemetry, sender=sender) as (app, engine):

            def say_ready() -> None:
                output.write(f"A2A server ready at {server.url}\n")
                output.flush()
                _log_start(setup, token_path, settings.agent, has_users=users is not None)
                if pages is not None:
                    pages.url = settings.public_url or shown_url(server.url)
                    if pages.notifications is not None and pages.url.startswith("https://"):
                        pages.notifications.contact = pages.url
                    show_page(pages, output, opens=settings.opens_page)

            server = a2a_server(app, engine, listener, serving, say_ready)
            with _announced(server.url, token_path, setup, rule, settings.agent):
                await server.run_until_stopped()


def _server_options(setup: Setup, settings: ServeSettings, token: str) -> "ServerOptions":
    from isthmus.a2a.options import ServerOptions
    from isthmus.a2a.server.users import Caps

    return ServerOptions(
        token=token,
        hosts=(settings.host,),
        public_url=settings.public_url,
        allowed_origins=settings.allowed_origins,
        strict_extension=settings.strict_extension,
        progress_text=settings.progress_text,
        user_tier=settings.user_tier,
        user_caps=Caps(*settings.user_caps),
        identity=_identity(setup, settings),
    )


def _announced(
    url: str, token_path: Path, setup: Setup, rule: "WorkspaceRule", agent: "HostedCommand | None"
) -> "contextlib.AbstractContextManager[None]":
    """Announce a server of our own agent to this user's other programs, if these need no settings to reach it."""
    from isthmus.app.running_servers import RunningServer, announced

    if agent is not None or not re.match(r"http://(127\.|localhost[:/]|\[::1\])", url):
        return contextlib.nullcontext()
    folders = tuple(str(root.resolve()) for root in rule.roots)
    return _logged(announced(RunningServer(os.getpid(), url, token_path.resolve(), setup.data_dir, folders)))


@contextlib.contextmanager
def _logged(announcing: "contextlib.AbstractContextManager[None]") -> "Generator[None]":
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(announcing)
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


@contextlib.asynccontextmanager
async def _engine(
    setup: Setup,
    settings: ServeSettings,
    rule: "WorkspaceRule",
    push_rule: "PushRule",
    on_resources: "Callable[[AgentResources], None] | None",
    placement: "Placement",
    repositories: "ServedRepositories",
    runs_commands: bool,
    telemetry: "Telemetry",
    pages: "WorkbenchPages | None",
) -> "AsyncGenerator[Engine]":
    """Run the engine of our own agent, or of the one that the options name, with what works beside it."""
    if settings.agent is not None:
        from isthmus.app.acp_serving import hosted_engine

        running = hosted_engine(setup, settings.agent, rule, placement=placement, telemetry=telemetry)
    else:
        from isthmus.agent.approval.policy import ApprovalMode
        from isthmus.agent.approval.session_policy import SettingsRule
        from isthmus.app.local_agent import local_agent
        from isthmus.app.local_agent_options import UNATTENDED_WAIT_SECONDS, ClientPrograms, LocalAgentOptions, McpUse

        address_policy = None if settings.allow_client_mcp else push_rule.refusal
        programs = ClientPrograms.OF_OWNER_HERE if runs_commands else ClientPrograms.OF_NOBODY
        options = LocalAgentOptions(
            takes_over=True,
            mcp=McpUse(UNATTENDED_WAIT_SECONDS, address_policy, client_programs=programs),
            settings_rule=SettingsRule(ApprovalMode(settings.max_approval_mode)),
            names_settings_files=False,
            on_resources=on_resources,
            placement=placement,
            repositories=repositories or None,
            telemetry=telemetry,
        )
        running = local_agent(setup, rule, options)
    async with running as engine, repositories.pruned(engine.journal), notifying(pages, engine):
        if pages is not None:
            pages.agent_of = engine.for_user
            watch_journal(pages, engine, rule)
        yield engine


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
    from isthmus.models.providers import provider_with_id

    found = provider_with_id(provider)
    return (*TEXT_MODES, *(sorted(found.media.kinds) if found is not None else ()))


def _users(setup: Setup, roots: tuple[Path, ...]) -> "UsersFile | None":
    """Return the users; None if no folder is set in which they may work.

    Raises:
        BadInputError: there are users' tokens, but no such folders.
    """
    from isthmus.a2a.server.users_file import FILE, UsersFile

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
