"""Messages that users write while a turn works: kept in the journal, and sent in order when turns end.

A message is sent only after a turn that was completed, also with no page open and after the end of the process. After
another end, and if one cannot be sent, they wait for the user. Each is sent once: the message that begins the turn has
its id, and the journal refuses a second one.
"""

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, cast

from isthmus.client import AgentClient, CommandMessage, CommandScope, LimitReached, PromptMessage
from isthmus.development_tool import EXTENSION_URI, CommandExecutionStatus
from isthmus.errors import IsthmusError, Unavailable
from isthmus.events import MessagePart
from isthmus.journal.port.base import Journal
from isthmus.journal.port.sessions import QueuedMessage, SessionRow, SessionState
from isthmus.record import record
from isthmus.text.visible import visible_line

AgentOf: TypeAlias = Callable[[str], AgentClient]
LOOK_SECONDS: Final = 5.0
"""Time in seconds between looks: for turns that other processes ended, and for messages that they kept."""
GATHER_SECONDS: Final = 0.05
"""Time in seconds for which changes are gathered before the queues are looked at."""
MAXIMUM_TEXT: Final = 1_000_000
"""Maximum number of characters of a message."""
MAXIMUM_IMAGES: Final = 20
_COMMAND: Final = re.compile(r"/([A-Za-z][\w:.-]*)(?:\s+(.*))?\Z", re.DOTALL)
_STRING_FIELDS: Final = ("text", "mode", "model")

log = logging.getLogger(__name__)


class BadMessageError(IsthmusError):
    """Raised for a message that cannot be kept; the text says what was expected."""


@record
class WrittenMessage:
    """A message as a user wrote it. ``images`` are base64 texts with their types and names."""

    text: str
    mode: str = ""
    model: str = ""
    images: tuple[Mapping[str, str], ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """AgentSettings that the message brings; those that it does not name stay as they are."""
        return {
            **({"approval_mode": self.mode} if self.mode else {}),
            **({"model": self.model} if self.model else {}),
        }

    @property
    def body(self) -> str:
        """Text as which it is kept."""
        return json.dumps({"text": self.text, "mode": self.mode, "model": self.model, "images": list(self.images)})


def written_from(given: Mapping[str, Any]) -> WrittenMessage:
    """Return the message in an object.

    Raises:
        BadMessageError: it is not one.
    """
    texts = [given.get(name, "") for name in _STRING_FIELDS]
    images = given.get("images", [])
    shapes = [isinstance(text, str) and len(text) <= MAXIMUM_TEXT for text in texts]
    if not all(shapes) or not isinstance(images, list):
        raise BadMessageError(f"expected text, mode and model as texts of at most {MAXIMUM_TEXT} characters")
    found = cast("list[object]", images)
    if len(found) > MAXIMUM_IMAGES or not all(map(_is_image, found)):
        raise BadMessageError(f"expected at most {MAXIMUM_IMAGES} images with data, mediaType and name, all texts")
    kept = tuple(
        {name: str(cast("dict[str, str]", image)[name]) for name in ("data", "mediaType", "name")} for image in found
    )
    text, mode, model = map(str, texts)
    message = WrittenMessage(text, mode, model, kept)
    if not message.text.strip():
        raise BadMessageError("expected a text")
    return message


def edited(message: QueuedMessage, given: Mapping[str, Any]) -> WrittenMessage:
    """Return a message that waits with another text.

    Raises:
        BadMessageError: the text is not one.
    """
    return written_from({**json.loads(message.body), "text": given.get("text")})


def shown(message: QueuedMessage) -> dict[str, Any]:
    """Return a message as pages show it: with the names of its images."""
    written = written_from(json.loads(message.body))
    return {
        "id": message.id,
        "text": written.text,
        "mode": written.mode,
        "model": written.model,
        "images": [image["name"] for image in written.images],
        "problem": message.problem,
    }


class MessageQueue:
    """The messages that wait in the sessions of a journal; ``agent_of`` returns the agent as a user sees it."""

    def __init__(self, journal: Journal, agent_of: AgentOf, *, look_seconds: float = LOOK_SECONDS) -> None:
        self._journal = journal
        self._agent_of = agent_of
        self._look_seconds = look_seconds
        self._news = asyncio.Event()
        self._woken = asyncio.Event()
        self._sending = asyncio.Lock()

    def wake(self) -> None:
        """Look at the queues soon: a message was kept, or may have become due."""
        self._woken.set()
        self._news.set()

    async def run(self) -> None:
        """Send messages whose turn has come, until cancelled."""
        end = self._journal.changes.watch(lambda _: self._news.set())
        self.wake()  # what became due while no process ran
        try:
            waits = False
            while True:
                try:
                    async with asyncio.timeout(self._look_seconds if waits else None):
                        await self._news.wait()
                except TimeoutError:
                    pass
                await asyncio.sleep(GATHER_SECONDS)
                self._news.clear()
                self._woken.clear()
                waits = await self._look()
                if not waits:
                    await self._rest()
        finally:
            end()

    async def _rest(self) -> None:
        """Leave the changes of a busy server alone for a while, since nothing waits; a message kept here ends it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._look_seconds):
                await self._woken.wait()

    async def _look(self) -> bool:
        """Send what is due; return whether messages wait."""
        try:
            places = await self._journal.sessions.with_queues()
        except IsthmusError as error:
            log.warning("messages that wait could not be looked at; they are again in a moment: %s", error)
            return True
        for user, context_id in places:
            try:
                await self._send_due(user, context_id)
            except IsthmusError as error:
                log.warning("a message that waits in session %s could not be sent yet: %s", context_id, error)
            except Exception:  # nothing awaits this, and the messages of other sessions are sent all the same
                log.exception("a message that waits in session %s could not be sent because of a bug", context_id)
        return bool(places)

    async def _send_due(self, user: str, context_id: str) -> None:
        async with self._sending:
            session = await self._journal.sessions.session(context_id, user)
            if session is None or session.state is not SessionState.DONE:
                return
            waiting = await self._journal.sessions.queue(context_id, user)
            if waiting and not waiting[0].problem:
                await self._send(session, user, waiting[0])

    async def send(self, context_id: str, user: str, message_id: str) -> str:
        """Send a message before the others, whatever the last turn came to; return why it was not sent, or nothing.

        Raises:
            JournalError: the journal cannot be used.
        """
        async with self._sending:
            session = await self._journal.sessions.session(context_id, user)
            if session is None or session.state not in (SessionState.DONE, SessionState.FAILED):
                return "the session works or waits for an answer; the message is sent when its turn has ended"
            waiting = await self._journal.sessions.queue(context_id, user)
            found = next((one for one in waiting if one.id == message_id), None)
            return "" if found is None else await self._send(session, user, found)

    async def _send(self, session: SessionRow, user: str, message: QueuedMessage) -> str:
        """Send a message, once; return why it was not sent, which it then keeps, or nothing."""
        problem = ""
        try:
            # Whether a process that has ended sent it before it could remove it.
            if not await self._journal.begun_by(user, message.id):
                problem = await self._begin(session, user, message)
        except (Unavailable, LimitReached) as error:
            log.info("a message waits longer: %s", error)
            return str(error)
        except IsthmusError as error:
            problem = str(error)
        if problem:
            held = QueuedMessage(message.id, message.body, visible_line(problem)[:500])
            await self._journal.sessions.put(session.context_id, user, held)
        else:
            await self._journal.sessions.drop(session.context_id, user, message.id)
        return problem

    async def _begin(self, session: SessionRow, user: str, message: QueuedMessage) -> str:
        written = written_from(json.loads(message.body))
        agent = self._agent_of(user)
        settings = written.settings or None
        if (command := _COMMAND.fullmatch(written.text.strip())) is not None:
            scope = CommandScope(None, session.context_id, settings)
            name, args = command[1], (command[2] or "").strip()
            execution = await agent.execute(CommandMessage((name,), args, scope, message.id, EXTENSION_URI))
            failed = execution.status is CommandExecutionStatus.FAILED_TO_START
            return (execution.message or written.text) if failed else ""
        await agent.prompt(
            PromptMessage(
                written.text,
                message.id,
                context_id=session.context_id,
                settings=settings,
                parts=_parts(written),
                extension=EXTENSION_URI,
            )
        )
        return ""


def _parts(written: WrittenMessage) -> tuple[MessagePart, ...]:
    if not written.images:
        return ()
    images = (
        MessagePart(raw=image["data"], media_type=image["mediaType"], filename=image["name"])
        for image in written.images
    )
    return (MessagePart(text=written.text), *images)


def _is_image(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    image = cast("dict[str, object]", value)
    return all(isinstance(image.get(name), str) for name in ("data", "mediaType", "name"))
