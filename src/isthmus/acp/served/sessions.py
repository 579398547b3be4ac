"""The running sessions of a hosted ACP agent: one process for each conversation, started when it is needed.

A process that has nothing to do for a while is ended, and its session is loaded again with the next prompt. A client
that asks for commands which the agent has not named yet has a session begun, which the next new conversation takes. Not
here: the work of tasks, see :mod:`isthmus.acp.served.agent`.
"""

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from isthmus.acp.host.agent_link import AgentLaunch, LoginRequiredError
from isthmus.acp.host.agent_session import NO_EXTRAS, AgentSession, FoldersRefusedError, SessionExtras
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.served.files import WorkspaceFiles
from isthmus.acp.v1.updates import AvailableCommand
from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.runtime.running_tasks import RunningTasks

SessionKey: TypeAlias = tuple[str, str]
"""User and contextId of a conversation."""

MAXIMUM_ASKED = 1000
"""Maximum number of folders of which it is remembered that an agent was started for its commands."""

log = logging.getLogger(__name__)


class AgentsBusyError(IsthmusError):
    """No further process of the agent may be started."""


@record
class OpenedSession:
    """A session that can take a prompt; ``loss`` says why it does not know the earlier conversation, or is empty."""

    session: AgentSession
    loss: str = ""


@dataclass(slots=True)
class _Place:
    """The session of one conversation, and the lock under which it is opened."""

    session: AgentSession | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    idle: asyncio.TimerHandle | None = None


class AcpSessions:
    """The sessions of one agent, by conversation."""

    def __init__(self, launch: AgentLaunch, limits: HostLimits) -> None:
        self.launch = launch
        self.limits = limits
        self._places: dict[SessionKey, _Place] = {}
        self._commands: dict[tuple[str, Path], tuple[AvailableCommand, ...]] = {}
        self._asking: dict[SessionKey, asyncio.Task[None]] = {}
        """Starts of agents for their commands, by user and folder."""
        self._closing = RunningTasks()

    def find(self, key: SessionKey) -> AgentSession | None:
        """Return the running session of a conversation."""
        place = self._places.get(key)
        return place.session if place is not None and place.session is not None and place.session.is_alive else None

    async def open(
        self, key: SessionKey, folder: Path, former: str | None, more: SessionExtras = NO_EXTRAS
    ) -> OpenedSession:
        """Return the session of a conversation, started if necessary; ``former`` is the id that it had.

        Its agent is started anew when its MCP servers or further folders change.

        Raises:
            LoginRequiredError: a user must log in first.
            IsthmusError: the agent cannot be started, or refused.
        """
        place = self._places.setdefault(key, _Place())
        async with place.opening:
            self._stop_timer(place)
            if place.session is None and former is None and not _is_spare(key):
                place.session = await self._take_spare(key[0], folder)
            session = place.session
            if session is not None:
                await session.settled()
                if session.is_alive and session.folder == folder and session.more == more:
                    return OpenedSession(session)
                await self._end(place)
            await self._make_room()
            files = WorkspaceFiles(folder, more.folders)
            session = place.session = AgentSession(self.launch, folder, files, self.limits, more)
            try:
                return OpenedSession(session, await self._begin(session, former))
            except BaseException:
                place.session = None
                self._close_later(session)
                raise

    def rest(self, key: SessionKey) -> None:
        """Have a session ended when it has nothing to do for a while."""
        place = self._places.get(key)
        if place is not None and place.session is not None:
            if commands := place.session.commands:
                self._commands[key[0], place.session.folder] = commands
            self._stop_timer(place)
            seconds = self.limits.idle_seconds
            place.idle = asyncio.get_running_loop().call_later(seconds, self._end_idle, key, place)

    def commands(self, user: str, folder: Path) -> tuple[AvailableCommand, ...]:
        """Return the agent's slash commands in a folder, as far as they are known: it names them in a session."""
        found = self._commands.get((user, folder), ())
        for (owner, _), place in self._places.items():
            if owner == user and place.session is not None and place.session.folder == folder:
                found = place.session.commands or found
        return found

    async def ask_for_commands(
        self, user: str, folder: Path, more: SessionExtras = NO_EXTRAS
    ) -> tuple[AvailableCommand, ...]:
        """Return the agent's slash commands in a folder; it is started once if it has not named them yet.

        After a limited time the commands are returned as far as they are known; a later call finds the rest.
        """
        key = _spare_key(user, folder)
        if not self.commands(user, folder) and key not in self._asking:
            if len(self._asking) >= MAXIMUM_ASKED:
                self._asking = {key: task for key, task in self._asking.items() if not task.done()}
            self._asking[key] = asyncio.create_task(self._begin_spare(key, folder, more), name="isthmus-acp-commands")
        if not self.commands(user, folder) and not self._asking[key].done():
            await asyncio.wait((self._asking[key],), timeout=self.limits.commands_seconds)
        return self.commands(user, folder)

    async def aclose(self) -> None:
        """End every process."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)
        for place in self._places.values():
            self._stop_timer(place)
            if place.session is not None:
                self._close_later(place.session)
        self._places.clear()
        await self._closing.wait()

    async def _begin(self, session: AgentSession, former: str | None) -> str:
        """Start a session, and return the reason why a former one was not continued."""
        await session.start(version("isthmus"))
        loss = ""
        if former is not None:
            try:
                await session.continue_session(former)
                return ""
            except (LoginRequiredError, FoldersRefusedError):
                raise
            except IsthmusError as error:
                if not session.is_alive:
                    raise
                loss = str(error)
                log.info("session %s of %s is not continued: %s", former, self.launch.command[0], loss)
        await session.begin()
        return loss

    async def _begin_spare(self, key: SessionKey, folder: Path, more: SessionExtras) -> None:
        """Begin a session before it has a conversation, and wait until the agent has named its commands."""
        try:
            opened = await self.open(key, folder, None, more)
        except IsthmusError as error:
            log.warning("the slash commands of %s are not known yet: %s", self.launch.command[0], error)
            return
        self.rest(key)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.commands_seconds):
                await opened.session.has_commands.wait()
        self._commands.setdefault((key[0], folder), opened.session.commands)

    async def _take_spare(self, user: str, folder: Path) -> AgentSession | None:
        """Return the session that was begun for its commands; the caller checks whether it suits."""
        key = _spare_key(user, folder)
        place = self._places.get(key)
        if place is None:
            return None
        async with place.opening:
            self._stop_timer(place)
            session, place.session = place.session, None
            self._places.pop(key, None)
            return session

    async def _make_room(self) -> None:
        for key, place in list(self._places.items()):
            if not place.opening.locked() and (place.session is None or not place.session.is_alive):
                await self._end(place)
                self._places.pop(key, None)
        running = {key: place for key, place in self._places.items() if place.session is not None}
        if len(running) < self.limits.processes:
            return
        for place in running.values():
            if place.idle is not None:
                await self._end(place)
                return
        raise AgentsBusyError(f"{len(running)} conversations with the agent are at work; wait until one has ended")

    def _end_idle(self, key: SessionKey, place: _Place) -> None:
        place.idle = None
        if place.session is not None and place.session.turn is None and not place.opening.locked():
            log.info("%s has nothing to do; its process is ended", self.launch.command[0])
            session, place.session = place.session, None
            self._places.pop(key, None)
            self._close_later(session)

    async def _end(self, place: _Place) -> None:
        self._stop_timer(place)
        session, place.session = place.session, None
        if session is not None:
            await session.aclose()

    def _close_later(self, session: AgentSession) -> None:
        self._closing.start(session.aclose(), "isthmus-acp-close")

    @staticmethod
    def _stop_timer(place: _Place) -> None:
        if place.idle is not None:
            place.idle.cancel()
            place.idle = None


def _spare_key(user: str, folder: Path) -> SessionKey:
    """Return the place of a session without a conversation; no contextId has this form."""
    return user, f"\0{folder}"


def _is_spare(key: SessionKey) -> bool:
    return key[1].startswith("\0")
