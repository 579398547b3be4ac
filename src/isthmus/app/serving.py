"""Builds and runs the A2A server (agent, users, push notifications, TLS and log) from the options of ``serve``."""

import contextlib
import logging
import os
import re
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from isthmus.app.logs import Redaction, begin_log, secrets_of
from isthmus.app.serve_settings import ServeSettings
from isthmus.app.serving_pages import completed, notifying, show_page, table_of, watch_journal, workbench_pages
from isthmus.app.serving_telemetry import ServedTelemetry
from isthmus.app.serving_users import served_users, token_use
from isthmus.app.setup import BadInputError, Setup, model_line, notices

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator
    from contextlib import AbstractAsyncContextManager

    from isthmus.a2a.options import Identity
    from isthmus.a2a.push.targets import PushRule
    from isthmus.a2a.server.users_file import UsersFile
    from isthmus.agent.resources import AgentResources
    from isthmus.app.acp_serving import HostedCommand
    from isthmus.app.served_repositories import ServedRepositories
    from isthmus.app.serving_users import ServedUsers
    from isthmus.engine import Engine
    from isthmus.engine.placement import Placement
    from isthmus.engine.workspaces import WorkspaceRule
    from isthmus.telemetry import Telemetry

log = logging.getLogger(__name__)


async def serve(setup: Setup, settings: ServeSettings, output: TextIO) -> None:
    """Serve until a signal. Write a line to ``output`` when the server listens, and the rest to the log.

    Raises:
        BadInputError: options contradict each other.
        ListenError: the address or the certificate cannot be used.
    """
    from isthmus.a2a.options import ServerOptions
    from isthmus.a2a.push.sender import PushSender
    from isthmus.a2a.push.service import pushing
    from isthmus.a2a.server.application import application
    from isthmus.a2a.server.listen import A2AServer, Certificate, bind
    from isthmus.a2a.server.users import Caps
    from isthmus.a2a.token_file import TOKEN_FILE, ensure_token_file
    from isthmus.a2a.wires import Wires
    from isthmus.app.served_repositories import ServedRepositories
    from isthmus.app.task_files import TaskFiles
    from isthmus.engine.placement import EVERY_TASK
    from isthmus.engine.workspaces import WorkspaceRule
    from isthmus.journal.place import JournalPlace
    from isthmus.listeners.limits import raise_descriptor_limit
    from isthmus.web.links import shown_url

    raise_descriptor_limit()
    certificate = Certificate(*settings.certificate) if settings.certificate is not None else None
    if certificate is not None:
        certificate.check()
    push_rule = _push_rule(settings.allowed_pushes)
    sender = PushSender(push_rule)
    pages = await workbench_pages(setup, settings) if settings.has_page else None
    token_path = settings.token_file or setup.data_dir / TOKEN_FILE
    placement = settings.placement or EVERY_TASK
    roots = (*((setup.workspace,) if settings.workspace is not None else ()), *settings.allowed_workspaces)
    if roots:
        roots += tuple(folder for folder, _ in placement.folders)
    users = _users(setup, roots)
    listener = bind(settings.host, settings.port)
    try:
        _require_privacy(settings, listener)
        token_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        token = ensure_token_file(token_path)
        telemetry = ServedTelemetry(settings.telemetry, "Isthmus" if settings.agent is None else settings.agent.title)
        redaction = Redaction([token, telemetry.token, *secrets_of(setup.environment)])
        handler = begin_log(settings.log_format, "debug" if setup.is_debugging else settings.log_level, redaction)
        telemetry.name_in(handler)
        has_default = settings.workspace is not None or settings.agent is not None
        journal_name = JournalPlace(TaskFiles(setup.data_dir).journal, setup.journal).name
        served = ServedRepositories(setup.data_dir, setup.environment, settings.repositories, journal_name)
        default = setup.workspace if has_default else None
        rule = WorkspaceRule(default, roots, placement.elsewhere, served.workspaces)
        wires = Wires(strict_extension=settings.strict_extension, progress_text=settings.progress_text)
        runs_commands = _runs_owners_commands(settings, listener)
        view = None if pages is None else completed(pages, setup, rule, sender)
        async with (
            telemetry,
            served_users(settings.sign_in, settings.audit_log, roots) as access,
            _engine(
                setup, settings, rule, push_rule, view and view.begin, placement, served, runs_commands, telemetry.work
            ) as engine,
            served.pruned(engine.journal),
            pushing(
                engine, sender, wires, is_served=partial(_is_served, users, access), telemetry=telemetry.work
            ) as push,
            notifying(pages, engine),
        ):
            if pages is not None:
                pages.agent_of = engine.for_user
                watch_journal(pages, engine, rule)
            options = ServerOptions(
                token=token,
                hosts=(settings.host,),
                public_url=settings.public_url,
                strict_extension=settings.strict_extension,
                progress_text=settings.progress_text,
                user_tier=settings.user_tier,
                user_caps=Caps(*settings.user_caps),
                identity=replace(_identity(setup, settings), security_schemes=access.security_schemes),
            )
            app = application(
                engine,
                options,
                for_user=engine.for_user,
                users=table_of(users, pages),
                push=push,
                wires=wires,
                owner_here=engine.for_owner_here() if runs_commands else None,
                pages=pages,
                issued=access.issued,
                audit=access.audit,
                token_use=token_use(engine, settings.agent, settings.user_caps, table_of(users, pages)),
                probes=telemetry.probes(engine),
                telemetry=telemetry.work,
            )

            def say_ready() -> None:
                output.write(f"A2A server ready at {server.url}\n")
                output.flush()
                _log_start(setup, token_path, settings.agent, has_users=users is not None)
                if pages is not None:
                    pages.url = settings.public_url or shown_url(server.url)
                    if pages.notifications is not None and pages.url.startswith("https://"):
                        pages.notifications.contact = pages.url
                    show_page(pages, output, opens=settings.opens_page)

            drain = partial(engine.drain, settings.drain_seconds) if settings.drain_seconds else None
            server = A2AServer(app, listener, certificate=certificate, on_ready=say_ready, drain=drain)
            with _announced(server.url, token_path, setup, rule, settings.agent):
                await server.run_until_stopped()
    finally:
        listener.close()


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


def _engine(
    setup: Setup,
    settings: ServeSettings,
    rule: "WorkspaceRule",
    push_rule: "PushRule",
    on_resources: "Callable[[AgentResources], None] | None",
    placement: "Placement",
    repositories: "ServedRepositories",
    runs_commands: bool,
    telemetry: "Telemetry",
) -> "AbstractAsyncContextManager[Engine]":
    """Return the engine of our own agent, or of the one that the options name."""
    if settings.agent is not None:
        from isthmus.app.acp_serving import hosted_engine

        return hosted_engine(setup, settings.agent, rule, placement=placement, telemetry=telemetry)
    from isthmus.agent.approval.policy import ApprovalMode
    from isthmus.agent.approval.session_policy import SettingsRule
    from isthmus.app.local_agent import UNATTENDED_WAIT_SECONDS, ClientPrograms, McpUse, local_agent

    address_policy = None if settings.allow_client_mcp else push_rule.refusal
    programs = ClientPrograms.OF_OWNER_HERE if runs_commands else ClientPrograms.OF_NOBODY
    return local_agent(
        setup,
        rule,
        takes_over=True,
        mcp_use=McpUse(UNATTENDED_WAIT_SECONDS, address_policy, client_programs=programs),
        settings_rule=SettingsRule(ApprovalMode(settings.max_approval_mode)),
        names_settings_files=False,
        on_resources=on_resources,
        placement=placement,
        repositories=repositories or None,
        telemetry=telemetry,
    )


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


def _is_served(users: "UsersFile | None", access: "ServedUsers", name: str) -> bool:
    return not name or access.are_issued(name) or (users is not None and users.table().has_user(name, time.time()))


def _push_rule(allowed: tuple[str, ...]) -> "PushRule":
    from isthmus.a2a.push.targets import PushRule, PushRuleError

    try:
        return PushRule.of(allowed)
    except PushRuleError as error:
        raise BadInputError(f"--allow-push-to {error}") from error


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


def _require_privacy(settings: ServeSettings, listener: "socket.socket") -> None:
    """Raise BadInputError if tokens would cross a network unencrypted without ``--insecure-http``."""
    from isthmus.a2a.server.listen import is_loopback

    behind_proxy = settings.public_url is not None and settings.public_url.startswith("https://")
    if is_loopback(listener) or settings.certificate is not None or behind_proxy or settings.insecure_http:
        return
    raise BadInputError(
        f"--host {settings.host} can be reached from other machines, and without TLS anyone on the network can read"
        " tokens and code: give --tls-cert and --tls-key, or --public-url https://... of a proxy that encrypts, or"
        " --insecure-http if the network is yours alone"
    )


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
