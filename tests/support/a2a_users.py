"""A server with several users on a real socket, whose tokens a test makes and revokes while it runs."""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.service import pushing
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.server.users.auth import IdentifyIssued, UserAccess
from isthmus.a2a.server.users.users import Caps, UserTable
from isthmus.a2a.wires import Wires
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.engine.users.day_use import DayUse
from isthmus.journal.port.base import Journal
from support.a2a_serving import TOKEN, RawClient, serving
from support.agent_behind import behind
from support.journals import journal_at
from support.plain_http import plain_client


@dataclass(slots=True)
class Users:
    """A server with users; ``table`` may be changed while it runs."""

    local: RawClient
    table: UserTable
    stack: AsyncExitStack
    engine: Engine

    def has(self, name: str) -> bool:
        """Return whether a user has a valid token."""
        return self.table.has_user(name, time.time())

    async def client(self, name: str, caps: Caps | None = None, expires: float | None = None) -> RawClient:
        """Return a client with a new token of this user."""
        self.table, _, token = self.table.added(name, 0, expires, caps)
        return await self.client_with(token)

    async def client_with(self, token: str) -> RawClient:
        """Return a client that sends this token."""
        headers = {"Authorization": f"Bearer {token}"}
        http = await self.stack.enter_async_context(plain_client(headers=headers))
        return replace(self.local, http=http)


@asynccontextmanager
async def users_of(
    folder: Path,
    agent: Agent,
    caps: Caps | None = None,
    count_use: Callable[[Journal], DayUse] | None = None,
    options: ServerOptions | None = None,
    identify_issued: IdentifyIssued | None = None,
    **more: Any,
) -> AsyncGenerator[Users]:
    """Serve several users; they and their sessions work only in ``folder``. ``more`` goes to the application."""
    rule = WorkspaceRule(folder, (folder,))
    engine = Engine(behind(agent), await journal_at(folder / "journal.sqlite"), EngineOptions(rule))
    await engine.start()
    options = options or ServerOptions(TOKEN, user_caps=caps or Caps())
    sender = PushSender(PushRule.of(["127.0.0.0/8"]))
    found: list[Users] = []
    async with AsyncExitStack() as stack:
        push = await stack.enter_async_context(
            pushing(engine, sender, Wires(), is_served=lambda name: found[0].has(name))
        )
        if count_use is not None:
            more["count_use"] = count_use(engine.journal).today
        access = UserAccess(lambda: found[0].table, identify_issued)
        served = serving(engine, options, for_user=engine.for_user, access=access, push=push, **more)
        found.append(Users(await stack.enter_async_context(served), UserTable(), stack, engine))
        yield found[0]
