"""Files of a session's tasks that go with it to other servers: attachments, and outputs that are too long to show.

Each server has them in its own data folder, ``outputs/TASK/NAME``. They are stored in the journal before the event that
names them, and fetched where the work goes on, with the paths in the conversation rewritten. What the journal says of
them may be a lie of another server: nothing is written but files, new ones, in the folders of the session's own tasks.
"""

import asyncio
import logging
import os
import re
import secrets
import stat
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from typing_extensions import override

from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.moved_paths import move_paths
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.events import AgentEvent, StateChange, ToolCallUpdate
from isthmus.files.atomic import reader_of
from isthmus.internal_events import CommandPrompt, ReferredContent, ToolResultRecorded
from isthmus.journal.port.base import JournalError, JournalUnavailable
from isthmus.journal.port.task_files import MAXIMUM_FILE_BYTES, StoredFile, TaskFileStore
from isthmus.media import Media
from isthmus.models.port.base import ModelToolResult, Part, Text
from isthmus.tools.port.kept_files import MAXIMUM_FOLDER_BYTES, stem_of

T = TypeVar("T")

PATIENCE_SECONDS = 300.0
"""Maximum time in seconds for which a task waits for the database, as its events do."""
PAUSE_SECONDS = 1.0
"""Pause in seconds between attempts."""
_REFERENCE = re.compile(r"/outputs/([\w.-]{1,200})/([\w.-]{0,254}[\w-])")
"""Pattern of a path of a task's file, with the id and the name."""
_NAME = re.compile(r"(?!\.{1,2}$)[\w.-]{1,255}")
_FOLDER = re.compile(r"(?:/[^\0-\x1f]{1,4000})?/outputs")

log = logging.getLogger(__name__)


class CarryingAgent(CodingAgent):
    """A coding agent whose files travel by ``files``."""

    def __init__(self, resources: AgentResources, options: AgentOptions, files: "CarriedFiles") -> None:
        super().__init__(resources, options)
        self._files = files

    @override
    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the session's task with the files that other servers have stored."""
        session, sizes = turn.session, dict[str, int]()
        await self._files.fetch(session)

        async def keep(event: AgentEvent) -> None:
            # Before the event: whoever goes on after it finds the files that it names.
            if names := self._files.named(event, session.task_id):
                await self._files.keep_patiently(session.task_id, names, sizes)
            await turn.keep(event)

        # Messages for the work under way have no files.
        return await super().advance(turn.passing(keep))


class CarriedFiles:
    """Files in ``outputs``, the folder with a subfolder per task id, and in ``store``."""

    def __init__(self, outputs: Path, store: TaskFileStore) -> None:
        self._outputs = outputs
        self._store = store

    async def keep(self, task_id: str, names: Iterable[str], sizes: dict[str, int] | None = None) -> None:
        """Store files of a task; ``sizes`` are those that have been stored, by name, and is updated.

        Files that are not there, or too large, are left out. Raises JournalError.
        """
        for name in names:
            path = self._outputs / task_id / name
            try:
                data = await asyncio.to_thread(content_of, path)
            except OSError:
                continue  # a text only seems to name a file
            if sizes is not None and sizes.get(name) == len(data):
                continue
            if len(data) > MAXIMUM_FILE_BYTES:
                log.warning("%s stays on this machine: it has more than %d bytes", path, MAXIMUM_FILE_BYTES)
            else:
                await self._store.keep(task_id, name, str(self._outputs), data)
            if sizes is not None:
                sizes[name] = len(data)

    async def keep_patiently(self, task_id: str, names: Collection[str], sizes: dict[str, int]) -> None:
        """Do what :meth:`keep` does; wait while the database is away, and go on without it after some minutes."""
        try:
            await _patiently(lambda: self.keep(task_id, names, sizes))
        except JournalError as error:
            log.warning("files of task %s are on this machine alone: %s", task_id, error)

    def named(self, event: AgentEvent, task_id: str) -> set[str]:
        """Return the names of the files of a task that an event names, or that its call has written."""
        match event:
            case ToolCallUpdate(call) if call.status.is_final:
                # Also those that only the result for the model names: it is recorded after this.
                pattern = re.compile(rf"{re.escape(stem_of(call.tool_call_id))}-[0-9a-f]{{8}}(?:\.[\w.-]*)?")
                with suppress(OSError):
                    names = {path.name for path in (self._outputs / task_id).iterdir()}
                    return {name for name in names if pattern.fullmatch(name)}
                return set()
            case ToolResultRecorded(content=text, media=media) | ReferredContent(text, media):
                found = _references((Text(text), *media))
            case CommandPrompt(text, media):
                found = _references((Text(text), *media))
            case _:
                return set()
        own = str(self._outputs)
        return {name for folder, task, name in found if task == task_id and folder.endswith(own)}

    async def fetch(self, session: Session) -> None:
        """Fetch the files that the session names and that are not here, and let it name them where they are now."""
        if not (wanted := self._wanted(session)):
            return
        tasks, names = sorted({task for task, _ in wanted}), sorted({name for _, name in wanted})
        try:
            found = await _patiently(lambda: self._store.find(tasks, names))
            found = [file for file in found if (file.task_id, file.name) in wanted]
            total = 0
            for file in found:
                total += file.size
                if total <= MAXIMUM_FOLDER_BYTES:
                    await self._fetch(file)
            if new := [file for file in found if str(self._outputs) not in file.folders]:
                # The conversation goes on with paths of this machine.
                await _patiently(lambda: self._store.add_folder(new, str(self._outputs)))
        except JournalError as error:
            log.warning("files of other servers could not be fetched for task %s: %s", session.task_id, error)
            return
        for task in {file.task_id for file in found}:
            folders = {folder for file in found if file.task_id == task for folder in file.folders}
            known = sorted((one for one in folders if _FOLDER.fullmatch(one)), key=len, reverse=True)
            move_paths(session, [f"{folder}/{task}" for folder in known], str(self._outputs / task))

    async def _fetch(self, file: StoredFile) -> None:
        path = self._outputs / file.task_id / file.name
        if self._is_here(file.task_id, file.name):
            return
        data = await _patiently(lambda: self._store.read(file.task_id, file.name))
        if data is not None:
            try:
                await asyncio.to_thread(write_new, path.parent, file.name, data)
            except OSError as error:
                log.warning("%s, a file of another server, could not be written: %s", path, error)

    def _wanted(self, session: Session) -> set[tuple[str, str]]:
        """Return the task and name of the files that the session names in folders of others, or that are not here."""
        parts = [part for message in session.messages for part in message.parts]
        parts += [item.result for item in session.calls.values() if item.result is not None]
        tasks = {session.task_id, *session.conversation.ends}
        # Those of a saved chat belong to tasks of another session of the user.
        tasks |= {part.path.parent.name for part in _media(parts)}
        own = str(self._outputs)
        return {
            (task, name)
            for folder, task, name in _references(parts)
            if task in tasks and not (folder.endswith(own) and self._is_here(task, name))
        }

    def _is_here(self, task_id: str, name: str) -> bool:
        return os.path.lexists(self._outputs / task_id / name)


def write_new(folder: Path, name: str, data: bytes) -> None:
    """Write a file that is not there yet, whole or not at all. Nothing is replaced, and no link followed.

    ``folder`` is made if it is missing, in one that may be.

    Raises:
        OSError: it cannot be written; there is no file of this name in the folder, or the folder is a link.
    """
    if not (_NAME.fullmatch(name) and _NAME.fullmatch(folder.name)):
        raise OSError(f"expected the name of a file, not {name[:100]!r}")
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        part = f".{secrets.token_hex(8)}.part"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(part, flags, 0o600, dir_fd=place)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            with suppress(FileExistsError):
                os.link(part, name, src_dir_fd=place, dst_dir_fd=place)
        finally:
            os.unlink(part, dir_fd=place)
    finally:
        os.close(place)


def content_of(path: Path) -> bytes:
    """Return the content of a file, of one that is too large a byte more than is kept. Blocking.

    Raises:
        OSError: it cannot be read, or is a link or not a regular file.
    """
    with reader_of(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("expected a regular file")
        return file.read(MAXIMUM_FILE_BYTES + 1)


def _media(parts: Iterable[Part]) -> Iterator[Media]:
    for part in parts:
        if isinstance(part, Media):
            yield part
        elif isinstance(part, ModelToolResult):
            yield from part.media


def _references(parts: Iterable[Part]) -> Iterator[tuple[str, str, str]]:
    """Yield the files of tasks that parts of messages name: the text up to ``/outputs``, the task's id and the name."""
    for part in parts:
        texts = [part.text] if isinstance(part, Text) else [part.content] if isinstance(part, ModelToolResult) else []
        for text in (*texts, *(str(media.path) for media in _media((part,)))):
            for match in _REFERENCE.finditer(text):
                end = match.start() + len("/outputs")
                yield text[max(0, end - 4096) : end], match[1], match[2]


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    """Return the result of work with the database; while it is away, try again for some minutes."""
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await work()
        except JournalUnavailable:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(PAUSE_SECONDS)
