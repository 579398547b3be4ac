"""The API for reviews, questions, files and written changes of companions in the page (docs/reference/workbench.md).

Both belong to the server's owner. An answer needs the token of a device, which is in a browser; the owner's token lies
in a file, where an agent could read it. A review or question is named ``COMPANION.ID``.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any, Final, Protocol, cast

from starlette.responses import Response

from isthmus.a2a.server.application import BodyOf
from isthmus.a2a.server.http.http_request import HttpRequest
from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode
from isthmus.errors import IsthmusError
from isthmus.ide.control.lineage import process_of_connection
from isthmus.network.loopback import is_loopback
from isthmus.web.companions.files import MAXIMUM_FILES_BODY, file_command, searched_words
from isthmus.web.companions.written import MAXIMUM_WRITTEN_BODY, wanted_of, written_command
from isthmus.web.http.json_response import json_response as _json
from isthmus.web.http.refusals import RefusalCode, refusal, refused

MAXIMUM_BODY: Final = 32 * 1024 * 1024
"""Maximum size of an answer in bytes; it may hold a whole file."""
KINDS: Final = ("reviews", "questions", "files", "written")
"""Names of the requests."""
_CHANGED = "the file or the proposal has changed since you saw it; nothing is decided"
_WRITTEN = "the file was written since you saw it; look again"
_OWNER = "reviews and questions of companions are for the owner of this server alone"
_ONLY_DEVICES = "expected the token of a device: only a paired browser acts for the user"
_WRITTEN_MEANWHILE = "something was written or decided since you saw it; nothing is decided, look again"
_LATE = "it was answered elsewhere, or its agent took it back"


class CompanionRefusedError(IsthmusError):
    """Raised when a companion refuses a command or does not answer; the text says why."""


class NoSuchCompanionError(IsthmusError):
    """Raised when no companion has an id any more."""


class Companions(Protocol):
    """The companions whose reviews a page shows."""

    async def waiting(self) -> list[JsonObject]:
        """Return the answer of each companion to the command ``waiting``, with its ``id``, which has no dot.

        Companions that do not answer in time are left out.
        """
        ...

    def changes(self) -> AsyncGenerator[None]:
        """Yield at once, and whenever something that :meth:`waiting` returns may have changed, until it is closed."""
        ...

    async def ask(self, companion: str, command: str, arguments: Mapping[str, object]) -> JsonObject:
        """Return the answer of a companion to one of :mod:`isthmus.ide.control.page_commands`.

        Raises:
            NoSuchCompanionError: it has ended.
            CompanionRefusedError: it refuses, or does not answer.
        """
        ...


class ReviewsApi:
    """Requests to ``reviews``, ``questions``, ``files`` and ``written`` of ``companions``."""

    def __init__(self, companions: Companions) -> None:
        self.companions = companions

    async def respond(
        self, name: str, principal: Principal, device: str, request: HttpRequest, body_of: BodyOf
    ) -> Response:
        """Answer a request to ``name`` below the API, which begins with one of :data:`KINDS`.

        ``device`` is the name of the device that sent it.
        """
        kind, _, item = name.partition("/")
        if principal.name:
            return refused(refusal(RefusalCode.OWNER_ONLY, _OWNER))
        if request.method == "GET" and not item and kind == "reviews":
            return _json({"companions": [_named(found) for found in await self.companions.waiting()]})
        if kind == "files" and item:
            return await self._files(item, principal, request, body_of)
        if kind == "written" and item:
            return await self._written(item, principal, device, request, body_of)
        companion, dot, own_id = item.partition(".")
        if (
            kind in ("files", "written")
            or not dot
            or request.method not in ("GET", "POST")
            or (request.method == "GET" and kind == "questions")
        ):
            return refused(refusal(RefusalCode.NOT_FOUND, "not found; see docs/reference/workbench.md"))
        try:
            if request.method == "GET":
                return _answered(await self.companions.ask(companion, "review", {"id": own_id}), item)
            return await self._decide(kind, item, principal, device, request, body_of)
        except NoSuchCompanionError as error:
            return refused(refusal(RefusalCode.COMPANION_ENDED, str(error)))
        except CompanionRefusedError as error:
            return refused(refusal(RefusalCode.COMPANION_REFUSED, str(error)))

    async def _decide(
        self, kind: str, item: str, principal: Principal, device: str, request: HttpRequest, body_of: BodyOf
    ) -> Response:
        fields = await _fields(principal, request, body_of, MAXIMUM_BODY)
        if isinstance(fields, Response):
            return fields
        wanted = _of_review(fields) if kind == "reviews" else _of_question(fields)
        if isinstance(wanted, str):
            return refused(refusal(RefusalCode.BAD_REQUEST, wanted))
        companion, _, own_id = item.partition(".")
        wanted |= {"id": own_id, "by": device, "browser": await asyncio.to_thread(_browser_of, request)}
        command = "decide" if kind == "reviews" else "reply"
        return _answered(await self.companions.ask(companion, command, wanted), item)

    async def _files(self, companion: str, principal: Principal, request: HttpRequest, body_of: BodyOf) -> Response:
        """Answer a request about the files of a companion whose editor is the page."""
        if request.method not in ("GET", "POST"):
            return refused(refusal(RefusalCode.WRONG_METHOD, "expected GET or POST", {"Allow": "GET, POST"}))
        if request.method == "GET":
            wanted = "page_find", searched_words(request)
            if not principal.token_id:
                return refused(refusal(RefusalCode.PAIRED_ONLY, _ONLY_DEVICES))
        else:
            fields = await _fields(principal, request, body_of, MAXIMUM_FILES_BODY)
            if isinstance(fields, Response):
                return fields
            wanted = file_command(fields)
            if isinstance(wanted, str):
                return refused(refusal(RefusalCode.BAD_REQUEST, wanted))
        return await self._asked(companion, wanted, _WRITTEN)

    async def _written(
        self, companion: str, principal: Principal, device: str, request: HttpRequest, body_of: BodyOf
    ) -> Response:
        """Answer a request about what agents wrote without a review."""
        if request.method not in ("GET", "POST"):
            return refused(refusal(RefusalCode.WRONG_METHOD, "expected GET or POST", {"Allow": "GET, POST"}))
        if request.method == "GET":
            wanted = wanted_of(request)
            if not principal.token_id:
                return refused(refusal(RefusalCode.PAIRED_ONLY, _ONLY_DEVICES))
        else:
            fields = await _fields(principal, request, body_of, MAXIMUM_WRITTEN_BODY)
            if isinstance(fields, Response):
                return fields
            wanted = written_command(fields)
            if not isinstance(wanted, str):
                wanted[1].update(by=device, browser=await asyncio.to_thread(_browser_of, request))
        if isinstance(wanted, str):
            return refused(refusal(RefusalCode.BAD_REQUEST, wanted))
        return await self._asked(companion, wanted, _WRITTEN_MEANWHILE)

    async def _asked(self, companion: str, wanted: tuple[str, dict[str, object]], changed: str) -> Response:
        """Return the answer of a companion; ``changed`` says that the user saw something else than there is."""
        try:
            answer = await self.companions.ask(companion, *wanted)
        except NoSuchCompanionError as error:
            return refused(refusal(RefusalCode.COMPANION_ENDED, str(error)))
        except CompanionRefusedError as error:
            return refused(refusal(RefusalCode.COMPANION_REFUSED, str(error)))
        return _changed(changed) if answer.get("changed") else _json(answer)


async def _fields(
    principal: Principal, request: HttpRequest, body_of: BodyOf, limit: int
) -> dict[str, object] | Response:
    """Return the object in a request's body, or a refusal."""
    if not principal.token_id:
        return refused(refusal(RefusalCode.PAIRED_ONLY, _ONLY_DEVICES))
    body = await body_of(request, limit)
    if isinstance(body, Refusal):
        return refused(body)
    try:
        given: object = decode(body)
    except JsonError as error:
        return refused(refusal(RefusalCode.BAD_REQUEST, str(error)))
    if not isinstance(given, dict):
        return refused(refusal(RefusalCode.BAD_REQUEST, "expected a JSON object"))
    return cast("dict[str, object]", given)


def _of_review(given: Mapping[str, object]) -> dict[str, object] | str:
    """Return the arguments for a decision, or what was expected instead."""
    decision, content, state = given.get("decision"), given.get("content"), given.get("state")
    if decision == "reject":
        reason = given.get("reason", "")
        return {"decision": "reject", "reason": reason} if isinstance(reason, str) else "expected reason as text"
    if decision != "accept" or not isinstance(state, str) or not (content is None or isinstance(content, str)):
        return (
            "expected decision as accept or reject; with accept, state as it was received, and content as text or not"
        )
    return {"decision": "accept", "state": state, "content": content}


def _of_question(given: Mapping[str, object]) -> dict[str, object] | str:
    answer, reason = given.get("answer"), given.get("reason", "")
    if answer not in ("yes", "session", "no") or not isinstance(reason, str):
        return "expected answer as yes, session or no, and reason, if given, as text"
    return {"answer": answer, "reason": reason} if reason else {"answer": answer}


def _browser_of(request: HttpRequest) -> int | None:
    """Return the process on this machine that sent a request; None if it is not known. Blocks."""
    client, server = request.scope.get("client"), request.scope.get("server")
    if client is None or server is None or not is_loopback(client[0]) or server[1] is None:
        return None
    return process_of_connection(int(client[1]), int(server[1]))


def _named(companion: JsonObject) -> dict[str, Any]:
    """Return what waits at a companion with the ids that the page uses."""
    own = companion["id"]
    lists = {
        name: [{**entry, "id": f"{own}.{entry['id']}"} for entry in companion.get(name, [])]
        for name in ("reviews", "questions", "ended")
    }
    return {**companion, **lists}


def _changed(message: str) -> Response:
    return refused(refusal(RefusalCode.CHANGED_MEANWHILE, message), {"changed": True})


def _answered(answer: JsonObject, item: str) -> Response:
    if answer.get("changed"):
        return _changed(_CHANGED)
    if "outcome" not in answer:
        return _json({**answer, "id": item})
    outcome = answer["outcome"]
    shown = None if outcome is None else {**outcome, "id": item}
    if answer.get("late") or outcome is None:
        return refused(refusal(RefusalCode.QUESTION_GONE, _LATE), {"outcome": shown})
    return _json({"outcome": shown})
