"""Who is being served: for each token its agent, its endpoint and what it has open.

Deliberately not here: who may come in (:mod:`isthmus.a2a.server.auth`), and what a user's tasks are (the engine).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from isthmus.a2a.dialects import AllWires
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.operations import PushService
from isthmus.a2a.server.auth import LOCAL_USER, Principal, Refusal
from isthmus.a2a.server.endpoint import A2AEndpoint
from isthmus.a2a.server.users import UserTable
from isthmus.a2a.wire import Caller
from isthmus.client import AgentClient, UserLimits

ForUser: TypeAlias = Callable[[str, UserLimits], AgentClient]
"""The agent as a user has it: his own tasks alone, and not more of them than the limits allow."""
PushFor: TypeAlias = Callable[[AgentClient], PushService]
"""The push targets of the tasks that an agent shows."""


@dataclass(slots=True)
class OpenRequests:
    """How many requests of one user are being answered now, whichever of his tokens they came with."""

    count: int = 0


@dataclass(slots=True)
class Served:
    """One visitor: on whose behalf requests are met and where."""

    visitor: Principal
    caller: Caller
    endpoint: A2AEndpoint
    body_limit: int
    max_open: int | None
    requests: OpenRequests

    def refuse_more(self) -> Refusal | None:
        """Refuse a request to who has as many open as allowed."""
        if self.max_open is None or self.requests.count < self.max_open:
            return None
        return Refusal(
            429,
            f"{self.visitor.name} has {self.requests.count} requests open, the most that are allowed (streams count"
            " until they end): close one, or wait for one to end",
            {"Retry-After": "1"},
        )


class Principals:
    """Everybody who was served since the start."""

    def __init__(
        self,
        agent: AgentClient,
        options: ServerOptions,
        *,
        for_user: ForUser | None = None,
        push: PushFor | None = None,
        wires: AllWires | None = None,
    ) -> None:
        self._agent = agent
        self._options = options
        self._for_user = for_user
        self._push = push
        self._wires = wires or AllWires(strict_extension=options.strict_extension)
        self._served: dict[Principal, Served] = {}
        self._requests: dict[str, OpenRequests] = {}
        self.closing = False

    def of(self, visitor: Principal) -> Served:
        """How this visitor is served."""
        found = self._served.get(visitor)
        if found is None:
            found = self._served[visitor] = self._made(visitor)
        return found

    @property
    def has_push(self) -> bool:
        """Whether there are push notifications."""
        return self._push is not None

    @property
    def open_streams(self) -> int:
        """How many answers are under way that wait for a task."""
        return sum(len(served.endpoint.streams) for served in self._served.values())

    def close(self) -> None:
        """End every stream properly."""
        self.closing = True
        for served in self._served.values():
            served.endpoint.streams.close()

    def keep(self, users: UserTable, now: float) -> None:
        """Let go of visitors whose token was revoked, has expired or has other caps now; their streams end."""
        for visitor, served in list(self._served.items()):
            entry = users.entries.get(visitor.token_id)
            is_same = (
                entry is not None
                and (entry.caps, entry.tier) == (visitor.caps, visitor.tier)
                and users.is_valid(visitor.token_id, now)
            )
            if visitor.token_id and not is_same:
                served.endpoint.streams.close(
                    "this stream ends: its token is not valid any more, or has other limits now"
                )
                del self._served[visitor]

    def _made(self, visitor: Principal) -> Served:
        options = self._options
        agent, caps = self._agent, visitor.caps
        if visitor != LOCAL_USER and self._for_user is not None:
            caps = caps.over(options.user_caps)
            agent = self._for_user(visitor.name, caps.limits)
        body_limit = min(options.body_limit, caps.max_request or options.body_limit)
        endpoint = A2AEndpoint(replace(options, body_limit=body_limit), self._wires)
        if self.closing:
            endpoint.streams.close()
        push = self._push(agent) if self._push is not None else None
        caller = Caller(agent, push, visitor.tier or options.user_tier, visitor.name)
        requests = self._requests.setdefault(visitor.name, OpenRequests())
        return Served(visitor, caller, endpoint, body_limit, caps.max_open, requests)
