"""The principals of a server: the agent, endpoint and open requests of each.

Requests are authenticated in :mod:`isthmus.a2a.server.users.auth`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.operations import PushService
from isthmus.a2a.server.endpoint import A2AEndpoint
from isthmus.a2a.server.users.auth import OWNER_HERE, Principal, Refusal
from isthmus.a2a.server.users.quota import CountUse, DayQuota, RequestRate
from isthmus.a2a.server.users.users import UserTable
from isthmus.a2a.wire import Caller
from isthmus.a2a.wires import Wires
from isthmus.client import AgentClient, UserLimits
from isthmus.journal.port.day_limits import DayLimits

ForUser: TypeAlias = Callable[[str, UserLimits], AgentClient]
"""Function that returns the agent as a user sees it: with only the user's own tasks, and within the limits."""
PushFor: TypeAlias = Callable[[AgentClient], PushService]
"""Function that returns the push service for an agent as one user sees it."""


@dataclass(slots=True)
class OpenRequests:
    """Number of open requests of one user, with any of the user's tokens, and the rate at which they come."""

    count: int = 0
    rate: RequestRate = field(default_factory=RequestRate)


@dataclass(slots=True)
class ServedPrincipal:
    """A principal with what is needed to answer its requests."""

    principal: Principal
    caller: Caller
    endpoint: A2AEndpoint
    body_limit: int
    max_open: int | None
    requests: OpenRequests
    max_requests_a_minute: int | None = None

    def refuse_rate(self, now: float) -> Refusal | None:
        """Count a request at monotonic time ``now``; refuse it if the user had the maximum in the last minute."""
        if self.max_requests_a_minute is None:
            return None
        seconds = self.requests.rate.take(self.max_requests_a_minute, now)
        if not seconds:
            return None
        return Refusal(
            429,
            f"{self.principal.name} has sent {self.max_requests_a_minute} requests in a minute, which is the maximum;"
            " send this one again later",
            {"Retry-After": str(math.ceil(seconds))},
        )

    def refuse_more(self) -> Refusal | None:
        """Refuse a request if the user already has the maximum number of open requests."""
        if self.max_open is None or self.requests.count < self.max_open:
            return None
        return Refusal(
            429,
            f"{self.principal.name} has {self.requests.count} requests open, which is the maximum (a stream counts"
            " until it ends): close one, or wait for one to end",
            {"Retry-After": "1"},
        )


class Principals:
    """All principals that were served since the start."""

    def __init__(
        self,
        agent: AgentClient,
        options: ServerOptions,
        *,
        for_user: ForUser | None = None,
        push: PushFor | None = None,
        wires: Wires | None = None,
        owner_here: AgentClient | None = None,
        count_use: CountUse | None = None,
    ) -> None:
        self._count_use = count_use
        self._agent = agent
        self._owner_here = owner_here
        self._options = options
        self._for_user = for_user
        self._push = push
        self.wires = wires or Wires.of(options)
        self._served: dict[Principal, ServedPrincipal] = {}
        self._requests: dict[str, OpenRequests] = {}
        self.closing = False

    def __len__(self) -> int:
        return len(self._served)

    def of(self, principal: Principal) -> ServedPrincipal:
        """Return a principal as it is served."""
        found = self._served.get(principal)
        if found is None:
            found = self._served[principal] = self._made(principal)
        return found

    @property
    def knows_owner_here(self) -> bool:
        """Whether the agent is another one for :data:`~isthmus.a2a.server.users.auth.OWNER_HERE`."""
        return self._owner_here is not None

    @property
    def has_push(self) -> bool:
        """Whether the server sends push notifications."""
        return self._push is not None

    @property
    def open_streams(self) -> int:
        """Number of open answers that wait for a task."""
        return sum(len(served.endpoint.streams) for served in self._served.values())

    def close(self) -> None:
        """End every stream properly."""
        self.closing = True
        for served in self._served.values():
            served.endpoint.streams.close()

    def keep(self, users: UserTable, now: float) -> None:
        """Drop principals whose token was revoked, has expired or now has other limits, and end their streams."""
        for principal, served in list(self._served.items()):
            if principal.expires is not None:
                self._keep_issued(principal, served, now)
                continue
            entry = users.entries.get(principal.token_id)
            is_same = (
                entry is not None
                and (entry.caps, entry.tier) == (principal.caps, principal.tier)
                and users.is_valid(principal.token_id, now)
            )
            if principal.token_id and not is_same:
                served.endpoint.streams.close("this stream ends: its token is no longer valid, or has other limits now")
                del self._served[principal]

    def _keep_issued(self, principal: Principal, served: ServedPrincipal, now: float) -> None:
        """Drop the principal of a token that was issued elsewhere if it has expired, or has no request open.

        Each of these tokens is a principal of its own, so that without this their number would only grow.
        """
        if principal.expires is not None and principal.expires <= now:
            served.endpoint.streams.close("this stream ends: its token has expired; connect again with a new one")
        elif served.requests.count:
            return
        del self._served[principal]

    def _made(self, principal: Principal) -> ServedPrincipal:
        options = self._options
        agent, caps = self._agent, principal.caps
        if principal == OWNER_HERE:
            agent = self._owner_here or self._agent
        elif principal.name and self._for_user is not None:
            caps = caps.over(options.user_caps)
            agent = self._for_user(principal.name, caps.limits)
        body_limit = min(options.body_limit, caps.max_request or options.body_limit)
        endpoint = A2AEndpoint(replace(options, body_limit=body_limit), self.wires)
        if self.closing:
            endpoint.streams.close()
        push = self._push(agent) if self._push is not None else None
        quota = None
        if caps.day != DayLimits() and self._count_use is not None:
            quota = DayQuota(principal.name, caps.day, self._count_use).check
        caller = Caller(agent, push, principal.tier or options.user_tier, principal.name, quota)
        requests = self._requests.setdefault(principal.name, OpenRequests())
        rate = caps.max_requests_a_minute
        return ServedPrincipal(principal, caller, endpoint, body_limit, caps.max_open, requests, rate)
