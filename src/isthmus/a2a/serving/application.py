"""The application of a server: an agent with its users, push notifications, quotas, audit log and telemetry."""

import contextlib
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import pushing
from isthmus.a2a.push.targets import PushRule, PushRuleError
from isthmus.a2a.server.application import Application, Observers, Pages, application
from isthmus.a2a.server.users.auth import UserAccess
from isthmus.a2a.serving.day_budgets import limited_days
from isthmus.a2a.serving.names import OptionNames, ServingError
from isthmus.a2a.serving.users import served_users
from isthmus.a2a.wires import Wires
from isthmus.record import record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from isthmus.a2a.options import ServerOptions
    from isthmus.a2a.server.users.auth import Authenticate
    from isthmus.a2a.server.users.users import UserTable
    from isthmus.a2a.serving.options import ServingOptions
    from isthmus.a2a.serving.telemetry import ServedTelemetry
    from isthmus.engine import Engine

OpenEngine: TypeAlias = "Callable[[], AbstractAsyncContextManager[Engine]]"
"""Function that returns the engine of an agent, which runs as long as its context lasts."""


@record
class Admission:
    """Users whom a server lets in beside its owner, and the folders in which they may work.

    ``users`` returns the table of tokens; None: there are none. ``authenticate`` replaces all tokens.
    """

    roots: "tuple[Path, ...]" = ()
    users: "Callable[[], UserTable] | None" = None
    authenticate: "Authenticate | None" = None

    def has(self, name: str) -> bool:
        """Return whether a user of this name is let in; the owner has no name."""
        if not name or self.authenticate is not None:
            return True
        return self.users is not None and self.users().has_user(name, time.time())


@record
class ServedAgent:
    """Facts about an agent that its server needs.

    ``reports_tokens``: its events say which model tokens it used, and with ``reports_costs`` what they cost.
    ``knows_owner_here``: programs of the owner on this machine may bring what other clients may not. ``pages`` are
    served beside A2A.
    """

    open_engine: OpenEngine
    reports_tokens: bool = False
    reports_costs: bool = False
    knows_owner_here: bool = False
    pages: Pages | None = None


def push_rule(pushes_to: tuple[str, ...], names: OptionNames) -> PushRule:
    """Return the rule about the receivers of push notifications.

    Raises:
        ServingError: one of the names and networks is invalid.
    """
    try:
        return PushRule.of(pushes_to)
    except PushRuleError as error:
        raise ServingError(f"{names.pushes_to} {error}") from error


@contextlib.asynccontextmanager
async def served_application(
    agent: ServedAgent,
    options: "ServerOptions",
    serving: "ServingOptions",
    admission: Admission,
    telemetry: "ServedTelemetry",
    *,
    sender: PushSender | None = None,
) -> "AsyncGenerator[tuple[Application, Engine]]":
    """Serve an agent as long as the context lasts. ``sender`` sends push notifications; None makes one.

    Raises:
        ServingError: options cannot be used together, or here.
        JournalError: the journal cannot be used.
    """
    names = serving.names
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(telemetry)
        if options.user_caps.max_tokens_a_day is not None and not agent.reports_tokens:
            raise ServingError(f"{names.tokens_a_day}: {names.unknown_tokens}")
        if options.user_caps.max_usd_a_day is not None and not agent.reports_costs:
            raise ServingError(f"{names.usd_a_day}: {names.unknown_costs}")
        sender = sender or PushSender(push_rule(serving.pushes_to, names))
        wires = Wires.of(options)
        access = await stack.enter_async_context(
            served_users(serving.sign_in, serving.audit_log, admission.roots, names)
        )
        engine = await stack.enter_async_context(agent.open_engine())

        def is_served(name: str) -> bool:
            return access.are_issued(name) or admission.has(name)

        push = await stack.enter_async_context(
            pushing(engine, sender, wires, is_served=is_served, telemetry=telemetry.work)
        )
        identity = options.identity
        if identity.security_schemes is None:
            options = replace(options, identity=replace(identity, security_schemes=access.security_schemes))
        app = application(
            engine,
            options,
            for_user=engine.for_user,
            push=push,
            wires=wires,
            owner_here=engine.for_owner_here() if agent.knows_owner_here else None,
            pages=agent.pages,
            access=UserAccess(
                admission.users, None if access.issued is None else access.issued.identify, admission.authenticate
            ),
            observers=Observers(access.audit, telemetry.probes(engine), telemetry.work),
            count_use=(
                limited_days(engine, options.user_caps, admission.users).today if agent.reports_tokens else None
            ),
        )
        yield app, engine
