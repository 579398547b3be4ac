"""The workbench inside the A2A server: its files for everybody, and its API for those with a token.

The page speaks A2A. This API has what A2A has not: pairing a browser, and the devices of a user
(docs/reference/workbench.md).
"""

import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import parse_qs

from starlette.responses import Response

from isthmus import __version__
from isthmus.a2a.protocol.errors import RETRY_AFTER_SECONDS
from isthmus.a2a.server.application import BodyOf, Identify
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.http.sse import EventStream, OpenStreams
from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.a2a.server.users.users import UsersError, UserTable
from isthmus.client import AgentClient
from isthmus.encoding.event_stream import comment
from isthmus.encoding.json_text import JsonError, decode
from isthmus.errors import Unavailable
from isthmus.listeners.connection_slot import token_shown
from isthmus.web.companions.review_feed import ReviewFeed, merged
from isthmus.web.companions.reviews import KINDS, ReviewsApi
from isthmus.web.http.bundle import HEADERS, ROOT, Bundle
from isthmus.web.http.json_response import json_response as _json
from isthmus.web.http.refusals import RefusalCode, refusal, refused
from isthmus.web.line_completion import complete_line
from isthmus.web.model_figures import model_prices, use_today
from isthmus.web.pairing.devices import Devices
from isthmus.web.pairing.links import entry_link, is_origin, is_reachable
from isthmus.web.pairing.paired_devices import PairedDevices, shown_device
from isthmus.web.pairing.pairing import SHORT_SECONDS, PairingCodes, TooManyCodesError, WrongCodeError
from isthmus.web.push.answering import PushedAnswers
from isthmus.web.push.notifications import Notifications
from isthmus.web.push.requests import answer_pushed, let_answer, push_state, subscribe
from isthmus.web.sessions.changes import ChangeFeed, TooManyStreamsError
from isthmus.web.sessions.pictures import PICTURES, PicturesApi
from isthmus.web.sessions.sessions import SessionsApi
from isthmus.web.trust import decide_trust, trust_question
from isthmus.web.view import NotShownError, WorkbenchView

API = f"{ROOT}api/"
AgentOf: TypeAlias = Callable[[str], AgentClient]
"""Function that returns the agent as a user sees it; the local user's name is empty."""
MAXIMUM_BODY = 10_000
"""Maximum size of a request to the API in bytes."""
MAXIMUM_EVENT_ID = 15
"""Maximum number of digits of the id after which a stream goes on: milliseconds since 1970."""

Reply: TypeAlias = dict[str, Any] | Refusal | Response

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WorkbenchPages:
    """The pages of one server. ``agent`` is its name; the page offers the folders ``workspaces`` for a new task.

    ``reviews`` are companions'; without ``has_tasks`` the server does not speak A2A. Without ``changes`` the stream of
    changes tells of reviews alone, and pages look for tasks every few seconds.
    """

    bundle: Bundle
    users: Devices
    agent: str
    workspaces: tuple[str, ...] = ()
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    view: WorkbenchView | None = None
    notifications: Notifications | None = None
    answers: PushedAnswers | None = None
    """Answers by the buttons of notifications; None until there is an agent."""
    codes: PairingCodes = field(default_factory=PairingCodes)
    agent_of: AgentOf | None = None
    reviews: ReviewsApi | None = None
    has_tasks: bool = True
    url: str = ""
    """URL under which others reach the server, for links; empty until it listens."""
    path: str = ""
    """Path of that URL without the slash at its end, below which the page is; the bundle is of this path, too."""
    changes: ChangeFeed | None = None
    sessions: SessionsApi | None = None
    pictures: PicturesApi | None = None
    review_feed: ReviewFeed | None = field(init=False)
    """Changes of the reviews, as lines of the same stream; None without reviews."""
    _streams: dict[Principal, OpenStreams] = field(default_factory=dict[Principal, OpenStreams])
    _is_closing: bool = False

    def __post_init__(self) -> None:
        self.review_feed = None if self.reviews is None else ReviewFeed(self.reviews.companions)

    def close_streams(self) -> None:
        """End every stream properly because the server stops."""
        self._is_closing = True
        for streams in self._streams.values():
            streams.close()

    def keep(self, users: UserTable, now: float) -> None:
        """End the streams of tokens that were revoked or have expired."""
        for principal, streams in list(self._streams.items()):
            if principal.token_id and not users.is_valid(principal.token_id, now):
                streams.close("its token is no longer valid")
                del self._streams[principal]

    def serves(self, path: str, method: str) -> bool:
        """Return whether requests for a path belong to the workbench; JSON-RPC is posted to ``/``."""
        return path.startswith(ROOT) or (path in ("/", ROOT[:-1]) and method in ("GET", "HEAD"))

    async def respond(self, request: HttpRequest, identify: Identify, body_of: BodyOf) -> Response:
        """Answer a request, whose Host and Origin are this server's."""
        path: str = request.scope["path"]
        if path.startswith(API):
            return await self._api(request, path.removeprefix(API), identify, body_of)
        if request.method not in ("GET", "HEAD"):
            return refused(refusal(RefusalCode.WRONG_METHOD, "expected GET or HEAD", {"Allow": "GET, HEAD"}))
        if path in ("/", ROOT[:-1]):
            return Response(status_code=307, headers={**HEADERS, "Location": f"{self.path}{ROOT}"})
        return self._file(request, path)

    def _file(self, request: HttpRequest, path: str) -> Response:
        file = self.bundle.find(path)
        if file is None:
            return refused(refusal(RefusalCode.NOT_FOUND, "not found"))
        headers = file.headers
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        content = file.content
        if "gzip" in request.headers.get("accept-encoding", "") and len(file.compressed) < len(content):
            content, headers["Content-Encoding"] = file.compressed, "gzip"
        return Response(content, 200, headers, file.media_type)

    async def _api(self, request: HttpRequest, name: str, identify: Identify, body_of: BodyOf) -> Response:
        routes: dict[tuple[str, str], Callable[[Principal, HttpRequest, BodyOf], Awaitable[Reply]]] = {
            ("GET", "session"): self._session,
            ("POST", "codes"): self._make_code,
            ("GET", "devices"): self._list_devices,
            ("POST", "complete"): self._complete,
            ("GET", "tools"): self._tools,
            ("GET", "settings"): self._settings,
            ("GET", "use"): self._use,
            ("POST", "prices"): self._prices,
            ("GET", "trust"): self._trust,
            ("POST", "trust"): self._decide_trust,
            ("GET", "push"): self._push_state,
            ("PUT", "push"): self._subscribe,
            ("POST", "push"): self._let_answer,
            ("DELETE", "push"): self._unsubscribe,
            ("GET", "changes"): self._follow_changes,
        }
        method, _, item = name.partition("/")
        if (request.method, name) == ("POST", "pair"):
            try:
                return _answer(await self._pair(request, body_of))
            except UsersError as error:
                return _devices_unusable(error)
        if (request.method, name) == ("POST", "push/answer"):
            return _answer(await self._answer_pushed(request, body_of))
        handler = routes.get((request.method, name))
        if handler is None and request.method == "DELETE" and method == "devices" and item:
            handler = self._revoke
        if method == "sessions" and self.sessions is not None:
            handler = self._sessions
        if method == PICTURES and self.pictures is not None and request.method == "GET":
            handler = self._pictures
        if method in KINDS and self.reviews is not None:
            handler = self._reviews
        if handler is None:
            return refused(refusal(RefusalCode.NOT_FOUND, "not found; see docs/reference/workbench.md"))
        principal = await identify()
        if isinstance(principal, Refusal):
            return _answer(principal)
        token_shown(request.scope)
        try:
            return _answer(await handler(principal, request, body_of))
        except UsersError as error:
            return _devices_unusable(error)
        except Unavailable as error:
            return refused(refusal(RefusalCode.UNAVAILABLE, str(error), {"Retry-After": str(RETRY_AFTER_SECONDS)}))

    async def _sessions(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        if self.sessions is None:
            return refusal(RefusalCode.NOT_FOUND, "this server has no sessions")
        return await self.sessions.respond(request.scope["path"].removeprefix(API), principal, request, body_of)

    async def _pictures(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        if self.pictures is None:
            return refusal(RefusalCode.NOT_FOUND, "this server has no pictures")
        return await self.pictures.respond(request.scope["path"].removeprefix(API), principal)

    async def _reviews(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        if self.reviews is None:
            return refusal(RefusalCode.NOT_FOUND, "this server shows no reviews")
        entry = self.users.table().entries.get(principal.token_id)
        device = "" if entry is None else entry.device
        name = request.scope["path"].removeprefix(API)
        return await self.reviews.respond(name, principal, device, request, body_of)

    async def _pair(self, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        if isinstance(given, Refusal):
            return given
        code, label = given.get("code"), given.get("device")
        if not isinstance(code, str) or not isinstance(label, str):
            return refusal(RefusalCode.BAD_REQUEST, "expected code and device, both text")
        try:
            used = self.codes.use(code[:200], self.clock())
        except WrongCodeError as error:
            return refusal(RefusalCode.WRONG_CODE, str(error))
        except TooManyCodesError as error:
            return refusal(RefusalCode.TOO_MANY_CODES, str(error), {"Retry-After": f"{error.seconds:.0f}"})
        return await self._devices.let_in(used, label)

    async def _session(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        entry = self.users.table().entries.get(principal.token_id)
        if entry is not None and entry.device:
            await self._devices.note_use(entry)
        return {
            "user": principal.name,
            "device": None if entry is None else shown_device(entry),
            "devices": len(self._devices.of(principal.name)),
            "agent": self.agent,
            "version": __version__,
            "workspaces": list(self.workspaces),
            "tasks": self.has_tasks,
            "reviews": self.reviews is not None and not principal.name,
            "entry": self.bundle.entry,
        }

    async def _follow_changes(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        reviews = None if principal.name else self.review_feed
        if self.changes is None and reviews is None:
            return refusal(RefusalCode.NOT_FOUND, "this server has no stream of changes; list the tasks")
        last = request.headers.get("last-event-id", "")
        if last and not (last.isascii() and last.isdigit() and len(last) <= MAXIMUM_EVENT_ID):
            return refusal(RefusalCode.BAD_REQUEST, "expected the id of a line of this stream in Last-Event-ID")
        try:
            if self.changes is not None:
                await self.changes.check(principal.name)
            if reviews is not None:
                reviews.check()
        except TooManyStreamsError as error:
            return refusal(RefusalCode.TOO_MANY_STREAMS, str(error), {"Retry-After": "10"})
        streams = self._streams.setdefault(principal, OpenStreams())
        if self._is_closing:
            streams.close()
        since = int(last) / 1000 if last else None
        parts = [] if self.changes is None else [self.changes.frames(principal.name, since)]
        parts += [] if reviews is None else [reviews.frames()]
        return EventStream(merged(*parts), streams, headers=HEADERS, last_frame=comment)

    async def _make_code(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        if isinstance(given, Refusal):
            return given
        origin = given.get("origin", "")
        if origin and not is_origin(origin):
            return refusal(RefusalCode.BAD_REQUEST, "expected an origin such as https://agent.example.org:8443")
        code = self.codes.short(principal.name, self.clock(), principal.token_id)
        # The page's own address leads here from wherever the page is shown, unless it is this machine's loopback.
        link = entry_link(f"{origin}{self.path}" if is_reachable(origin) else self.url, code.text)
        qr = None if link.qr is None else link.qr.as_lines()
        return {"code": code.text, "seconds": SHORT_SECONDS, "link": link.url, "qr": qr}

    async def _complete(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        if isinstance(given, Refusal):
            return given
        return await complete_line(None if self.agent_of is None else self.agent_of(principal.name), given)

    async def _tools(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        query = parse_qs(request.scope.get("query_string", b"").decode("ascii", "replace"))
        workspace = query.get("workspace", self.workspaces[:1])[0]
        if workspace not in self.workspaces:
            return refusal(RefusalCode.BAD_REQUEST, "expected a workspace that the session lists")
        if self.view is None:
            return refusal(RefusalCode.NOT_FOUND, "this server shows no tools")
        try:
            return {"workspace": workspace, **await self.view.tools(principal.name, workspace)}
        except NotShownError as error:
            return refusal(RefusalCode.NOT_SHOWN, str(error))

    async def _trust(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        return await trust_question(self.view, principal.name, request.scope.get("query_string", b""))

    async def _decide_trust(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        return given if isinstance(given, Refusal) else await decide_trust(self.view, principal.name, given)

    async def _use(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        return await use_today(self.view, principal.name)

    async def _prices(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        return given if isinstance(given, Refusal) else await model_prices(self.view, principal.name, given)

    async def _settings(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        if self.view is None:
            return refusal(RefusalCode.NOT_FOUND, "this server shows no settings")
        try:
            return await self.view.settings(principal.name)
        except NotShownError as error:
            return refusal(RefusalCode.NOT_SHOWN, str(error))

    async def _push_state(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        return await push_state(self.notifications, self.users.table().entries.get(principal.token_id))

    async def _subscribe(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        if isinstance(given, Refusal):
            return given
        return await subscribe(self.notifications, self.users.table().entries.get(principal.token_id), given)

    async def _let_answer(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        given = await _object(request, body_of)
        return given if isinstance(given, Refusal) else await let_answer(self.notifications, principal.token_id, given)

    async def _answer_pushed(self, request: HttpRequest, body_of: BodyOf) -> Reply:
        """Answer a question by a token from a notification, which is all that a service worker can show."""
        given = await _object(request, body_of)
        return given if isinstance(given, Refusal) else await answer_pushed(self.answers, request.scope, given)

    async def _unsubscribe(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        if self.notifications is not None:
            await self.notifications.unsubscribe(principal.token_id)
        return {"endpoint": None}

    async def _list_devices(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        return self._devices.listing(principal)

    async def _revoke(self, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Reply:
        return await self._devices.revoke(principal.name, request.scope["path"].rpartition("/")[2])

    @property
    def _devices(self) -> PairedDevices:
        return PairedDevices(self.users, self.now)


async def _object(request: HttpRequest, body_of: BodyOf) -> dict[str, Any] | Refusal:
    """Return the object in a request's body; an empty one for an empty body."""
    body = await body_of(request, MAXIMUM_BODY)
    if isinstance(body, Refusal):
        return body
    if not body:
        return {}
    try:
        value: object = decode(body)
    except JsonError as error:
        return refusal(RefusalCode.BAD_REQUEST, str(error))
    return (
        cast("dict[str, Any]", value)
        if isinstance(value, dict)
        else refusal(RefusalCode.BAD_REQUEST, "expected a JSON object")
    )


def _devices_unusable(error: UsersError) -> Response:
    log.error("%s", error)
    return refused(
        refusal(RefusalCode.DEVICES_UNUSABLE, "the devices cannot be read or changed; the server's log says why")
    )


def _answer(reply: Reply) -> Response:
    if isinstance(reply, Response):
        return reply
    if isinstance(reply, Refusal):
        return refused(reply)
    return _json(reply)
