"""The review page: which requests it answers, and their effect. No sockets.

A link works once: it opens a visit, whose cookie the browser sends only to that visit's paths. Requests with another
Host or Origin, and forms without the visit's secret, are refused. Agents never get a link. A form names what the user
saw; if the file or the proposal has changed since, the review is shown again and nothing is decided.
"""

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final
from urllib.parse import parse_qsl

from isthmus.editors.review_page import html
from isthmus.editors.review_page.html import Html
from isthmus.editors.review_page.pending_reviews import PendingReviews, ReviewView
from isthmus.ide.editor import Consent
from isthmus.ide.reviews.reviewed_file import seen_state, text_on_disk, typed_in_browser
from isthmus.listeners.gate import find_foreign, same_secret
from isthmus.notebooks.changes import NotebookChanges
from isthmus.notebooks.view import changes_between
from isthmus.record import record

READING_SECONDS: Final = 1.0
"""Minimum time in seconds between a change of the questions and a yes: an earlier click was meant for another one."""
MAXIMUM_FORM_BYTES: Final = 16 * 1024 * 1024
MAXIMUM_FIELDS: Final = 2000
MAXIMUM_LINKS: Final = 20
"""Maximum number of links that were not opened; a further one replaces the oldest."""
MAXIMUM_VISITS: Final = 20
"""Maximum number of visits; a further one ends the oldest."""
COOKIE: Final = "isthmus-review"
FORM: Final = "application/x-www-form-urlencoded"


@record
class PageRequest:
    """An HTTP request. Names of headers are lowercase; the values of a repeated header are joined by a comma."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@record
class PageResponse:
    """An HTTP response."""

    status: int
    body: str
    headers: Mapping[str, str]


@record
class _Visit:
    id: str
    cookie: str
    secret: str

    @property
    def base(self) -> str:
        return f"/visit/{self.id}"


class ReviewPage:
    """The page of these reviews on a port of the loopback interface."""

    def __init__(self, reviews: PendingReviews, port: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._reviews = reviews
        self._clock = clock
        self._shown_questions: dict[str, tuple[tuple[str, ...], float]] = {}
        """Ids of the questions that each visit shows, and since when."""
        self._port = port
        self._hosts = frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost"))
        self._links: OrderedDict[str, None] = OrderedDict()
        self._visits: OrderedDict[str, _Visit] = OrderedDict()

    def link(self) -> str:
        """Return a new link for the user, which works once."""
        token = secrets.token_urlsafe(32)
        self._links[token] = None
        while len(self._links) > MAXIMUM_LINKS:
            self._links.popitem(last=False)
        return f"http://127.0.0.1:{self._port}/open/{token}"

    def refusal(self, request: PageRequest) -> PageResponse | None:
        """Return the refusal of a request by its head alone; None if its body may be read."""
        if find_foreign([request.headers.get("host", "")], (), self._hosts.__contains__) is not None:
            return _refused(403, f"Expected a Host of this page: {', '.join(sorted(self._hosts))}.")
        match _parts(request):
            case ["open", _] if request.method == "GET":
                return None
            case ["visit", name, *_]:
                visit = self._known_visit(name, request.headers.get("cookie", ""))
                if visit is None:
                    return _refused(403, _EXPIRED)
                return self._refusal_of_foreign(request) if request.method == "POST" else None
            case _:
                return _refused(404 if request.method == "GET" else 405, _EXPIRED)

    def has_token(self, request: PageRequest) -> bool:
        """Return whether a request that is not refused has a link that works, or belongs to a visit."""
        parts = _parts(request)
        return parts[0] == "visit" or self._known_link(parts[-1]) is not None

    async def answer(self, request: PageRequest) -> PageResponse:
        """Answer a request."""
        if (refusal := self.refusal(request)) is not None:
            return refusal
        match _parts(request):
            case ["visit", name, *rest]:
                return await self._answer_in_visit(self._visits[name], rest, request)
            case parts:
                return self._begin_visit(parts[-1])

    def _begin_visit(self, token: str) -> PageResponse:
        known = self._known_link(token)
        if known is None:
            return _refused(403, _EXPIRED)
        del self._links[known]
        visit = _Visit(secrets.token_urlsafe(12), secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        self._visits[visit.id] = visit
        while len(self._visits) > MAXIMUM_VISITS:
            ended, _ = self._visits.popitem(last=False)
            self._shown_questions.pop(ended, None)
        # Not a redirect: the browser would send no cookie along if the link was clicked on another site.
        cookie = f"{COOKIE}={visit.cookie}; Path={visit.base}; HttpOnly; SameSite=Strict"
        body = html.link(f"{visit.base}/", "Go on to the review")
        return _page("Isthmus", body, {"set-cookie": cookie}, refresh=f"0;url={visit.base}/")

    def _known_link(self, token: str) -> str | None:
        return next((link for link in self._links if same_secret(token, link)), None)

    def _known_visit(self, name: str, cookies: str) -> _Visit | None:
        visit = self._visits.get(name)
        sent = [part.strip().removeprefix(f"{COOKIE}=") for part in cookies.split(";")]
        if visit is None or not any(same_secret(value, visit.cookie) for value in sent):
            return None
        return visit

    async def _answer_in_visit(self, visit: _Visit, rest: list[str], request: PageRequest) -> PageResponse:
        form = html.PageForm(visit.base, visit.secret)
        match request.method, rest:
            case "GET", []:
                pending = self._reviews
                self._note_questions(visit)
                body = html.overview(pending.views, pending.questions, pending.messages, form)
                return _page("Isthmus", body, refresh=str(html.REFRESH_SECONDS))
            case "GET", ["review", review_id]:
                view = self._reviews.view(review_id)
                return await self._show(view, form) if view is not None else self._back(visit, _ANSWERED)
            case "POST", [("review" | "question") as kind, name]:
                fields = self._fields(visit, request)
                if isinstance(fields, PageResponse):
                    return fields
                if kind == "question":
                    return self._question(visit, name, fields)
                return await self._review(visit, name, fields)
            case _:
                return _refused(404, "There is no such page here.")

    def _refusal_of_foreign(self, request: PageRequest) -> PageResponse | None:
        """Return the refusal of a request that, by its head, comes from no form of our own page."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin", "")
        own_origins = {f"http://{name}" for name in self._hosts}
        if find_foreign([host], [origin], self._hosts.__contains__, own_origins) is not None:
            return _refused(403, "Expected the Origin of this page.")
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            return _refused(415, f"Expected a form ({FORM}).")
        return None

    def _fields(self, visit: _Visit, request: PageRequest) -> dict[str, str] | PageResponse:
        """Return the fields of a form of our own page, or the refusal."""
        try:
            pairs = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=MAXIMUM_FIELDS)
        except ValueError:
            return _refused(400, "Expected a form in UTF-8 with few fields.")
        fields = dict(pairs)
        if not same_secret(fields.get("secret", ""), visit.secret):
            return _refused(403, _EXPIRED)
        return fields

    def _note_questions(self, visit: _Visit) -> None:
        """Note which questions a visit shows, and since when."""
        asked = tuple(question.id for question in self._reviews.questions)
        if self._shown_questions.get(visit.id, ((), 0.0))[0] != asked:
            self._shown_questions[visit.id] = (asked, self._clock())

    def _question(self, visit: _Visit, question_id: str, fields: Mapping[str, str]) -> PageResponse:
        asked, since = self._shown_questions.get(visit.id, ((), self._clock()))
        is_unread = question_id not in asked or self._clock() - since < READING_SECONDS
        action = fields.get("action")
        consent = next((each for each in Consent if each.value == action), Consent.NO)
        if is_unread and consent.is_yes:
            return self._back(visit, _UNREAD)
        answered = self._reviews.answer(question_id, consent)
        return self._back(visit, "" if answered else _ANSWERED)

    async def _review(self, visit: _Visit, review_id: str, fields: Mapping[str, str]) -> PageResponse:
        view = self._reviews.view(review_id)
        if view is None:
            return self._back(visit, _ANSWERED)
        if fields.get("action") == "reject":
            return self._back(visit, "" if self._reviews.reject(review_id) else _ANSWERED)
        form = html.PageForm(visit.base, visit.secret)
        old, changes = await asyncio.to_thread(_compared, view)
        if fields.get("state") != seen_state(old, view.text):
            return await self._show(view, form, "The file or the proposal changed meanwhile; nothing is decided yet.")
        is_notebook = changes is not None and bool(changes.all)
        accepting = fields.get("action") == "accept"
        if changes is not None and is_notebook:
            ticked = {change.number for change in changes.all if not accepting or f"change-{change.number}" in fields}
            if not ticked:
                return await self._show(view, form, "Nothing is ticked. To accept nothing at all, reject.")
            text = await asyncio.to_thread(_text_with_ticked, changes, ticked, fields)
        else:
            text = typed_in_browser(view.text, fields.get("text"))
        if accepting:
            return self._back(visit, "" if self._reviews.accept(review_id, text) else _ANSWERED)
        self._reviews.edit(review_id, text)
        return self._back(visit)

    async def _show(self, view: ReviewView, form: html.PageForm, notice: str = "") -> PageResponse:
        def rendered() -> Html:
            old, changes = _compared(view)
            return html.review(view, old, changes, seen_state(old, view.text), form, notice)

        return _page(view.review.file_path, await asyncio.to_thread(rendered))

    def _back(self, visit: _Visit, notice: str = "") -> PageResponse:
        if not notice:
            return PageResponse(303, "", {**_headers(""), "location": f"{visit.base}/"})
        body = html.paragraph(notice, is_notice=True) + html.link(f"{visit.base}/", "All edits and questions")
        return _page("Isthmus", Html(body))


_EXPIRED: Final = "This link does not work any more. Get a new one with `isthmus ide diffs` in a terminal of your own."
_UNREAD: Final = (
    "The questions had just changed, so this yes was not taken. Read the question, then answer it once more."
)
_ANSWERED: Final = "It was answered elsewhere, or its agent took it back."


def _parts(request: PageRequest) -> list[str]:
    return [part for part in request.path.split("/") if part]


def _compared(view: ReviewView) -> tuple[str | None, NotebookChanges | None]:
    """Return the text on disk, and the changes if it is a notebook. Blocks."""
    path = view.review.file_path
    old = text_on_disk(path)
    return old, changes_between(path, old, view.text)


def _text_with_ticked(changes: NotebookChanges, ticked: set[int], fields: Mapping[str, str]) -> str:
    sources: dict[int, str] = {}
    for change in changes.all:
        _, new = changes.cells(change)
        if new is not None and change.number in ticked:
            sources[change.number] = typed_in_browser(new.source, fields.get(f"source-{change.number}"))
    return changes.accept(ticked, sources)


def _page(title: str, body: Html, headers: Mapping[str, str] | None = None, *, refresh: str = "") -> PageResponse:
    nonce = secrets.token_urlsafe(16)
    text = html.document(title, body, nonce, refresh=refresh)
    return PageResponse(200, text, {**_headers(nonce), **(headers or {})})


def _refused(status: int, text: str) -> PageResponse:
    nonce = secrets.token_urlsafe(16)
    return PageResponse(status, html.document("Isthmus", html.paragraph(text), nonce), _headers(nonce))


def _headers(nonce: str) -> dict[str, str]:
    style = f"'nonce-{nonce}'" if nonce else "'none'"
    return {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": f"default-src 'none'; style-src {style}; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'",
        "cache-control": "no-store",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        # Not "no-referrer": browsers would send `Origin: null` from our own forms.
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }
