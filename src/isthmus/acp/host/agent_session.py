"""A session of an agent in a process of its own: begins or loads it, passes prompts on, and cancels turns.

Not here: the process, see :mod:`isthmus.acp.host.agent_link`; what the agent asks for, see
:mod:`isthmus.acp.host.agent_requests`; and how long a session is kept.
"""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from isthmus.acp.host.agent_link import (
    AUTH_REQUIRED,
    AgentLaunch,
    AgentLink,
    AgentLostError,
    ClientRequest,
    LoginRequiredError,
    ResponseT,
)
from isthmus.acp.host.agent_requests import AgentRequests
from isthmus.acp.host.files import SessionFiles
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.mcp_servers import servers_for
from isthmus.acp.host.prompt_turn import PromptEnd, PromptTurn
from isthmus.acp.host.update_reader import UpdateReader
from isthmus.acp.host.usage import StatedUsage, model_in, models_used
from isthmus.acp.v1.connection import (
    PROTOCOL_VERSION,
    AgentCapabilities,
    ClientCapabilities,
    ElicitationCapabilities,
    FileSystemCapabilities,
    Implementation,
    InitializeRequest,
    InitializeResponse,
    Present,
)
from isthmus.acp.v1.content import ContentBlock
from isthmus.acp.v1.sessions import (
    CancelNotification,
    LoadSessionRequest,
    NewSessionRequest,
    PromptRequest,
    PromptResponse,
    ResumeSessionRequest,
)
from isthmus.acp.v1.updates import (
    AvailableCommand,
    CommandsUpdate,
    ConfigOptionsUpdate,
    SessionNotification,
    UsageUpdate,
)
from isthmus.development_tool import McpServerSettings
from isthmus.encoding.codec import JsonObject, from_json, to_camel_json
from isthmus.errors import DecodeError, IsthmusError
from isthmus.record import record
from isthmus.rpc.messages import RpcError

POLL_SECONDS = 0.05
"""Time in seconds between two looks whether more may be read from an agent that sends too much."""
log = logging.getLogger(__name__)


class TurnRunningError(IsthmusError):
    """The session has a turn that has not ended."""


class FoldersRefusedError(IsthmusError):
    """The agent does not work in further folders."""


@record
class SessionExtras:
    """Members of a session beside its folder: MCP servers to which the agent connects, and further folders."""

    servers: tuple[McpServerSettings, ...] = ()
    folders: tuple[Path, ...] = ()


NO_EXTRAS = SessionExtras()


@record
class BegunAnswer:
    """An answer to ``session/new``, as far as it is used; ``models`` is of earlier drafts."""

    session_id: str
    config_options: Any = None
    models: Any = None


@record
class ContinuedAnswer:
    """An answer to ``session/load`` or ``session/resume``, as far as it is used."""

    config_options: Any = None
    models: Any = None


class AgentSession:
    """An agent that was started for one session; the handler of what the agent sends."""

    def __init__(
        self,
        launch: AgentLaunch,
        folder: Path,
        files: SessionFiles,
        limits: HostLimits,
        more: SessionExtras = NO_EXTRAS,
    ) -> None:
        self.launch = launch
        self.folder = folder
        self.more = more
        self.session_id = ""
        self.commands: tuple[AvailableCommand, ...] = ()
        self.has_commands = asyncio.Event()
        """Event that is set when the agent has named its commands."""
        self.usage: StatedUsage | None = None
        """Last statement of the agent about the session's context and cost."""
        self.capabilities = AgentCapabilities()
        self.auth_methods: tuple[str, ...] = ()
        """Names of the agent's ways to log in."""
        self.turn: PromptTurn | None = None
        """The turn that works, or that waits for an answer."""
        self.limits = limits
        self._model = launch.agent.title
        """Name under which the tokens of turns are counted: the model's, as far as the agent states it."""
        self._link = AgentLink(launch, folder, self, limits, self._make_room)
        title = launch.agent.title
        self._requests = AgentRequests(
            *(title, str(folder), files, limits, self._turn_of),
            is_alive=lambda: self.is_alive,
            # Before its answer to session/new an agent may know its session already.
            has_session=lambda session_id: self.session_id in ("", session_id),
        )
        self._is_muted = True
        self._past = asyncio.Event()
        """Event that is set by each update of the past of a loaded session."""
        self._past.set()
        self._malformed = 0
        self._work: set[asyncio.Task[None]] = set()

    @property
    def is_alive(self) -> bool:
        """Whether the agent can take prompts."""
        return self._link.is_alive

    async def start(self, version: str) -> None:
        """Start the process and initialize it; ``version`` is our own.

        Raises:
            AgentStartError: the program cannot be started.
            IsthmusError: it ended, refused, or did not answer in time.
        """
        await self._link.start()
        reads = not self.launch.agent.reads_by_itself
        files = FileSystemCapabilities(read_text_file=reads, write_text_file=True)
        abilities = ClientCapabilities(files, elicitation=ElicitationCapabilities(form=Present()))
        request = InitializeRequest(PROTOCOL_VERSION, abilities, Implementation("isthmus", version, "Isthmus"))
        answer = await self._link.ask(request, InitializeResponse, self.limits.initialize_seconds)
        if answer.protocol_version != PROTOCOL_VERSION:
            raise AgentLostError(
                f"the agent speaks version {answer.protocol_version} of ACP; expected version {PROTOCOL_VERSION}"
            )
        self.capabilities = answer.agent_capabilities or AgentCapabilities()
        methods = (answer.auth_methods or ())[: self.limits.options]
        self.auth_methods = tuple(item.name[: self.limits.title] for item in methods)

    async def begin(self) -> None:
        """Begin a new session.

        Raises:
            LoginRequiredError: a user must log in first.
            IsthmusError: the agent refused, ended, or did not answer in time.
        """
        servers = servers_for(self.more.servers, self.capabilities)
        request = NewSessionRequest(str(self.folder), servers, self._further_folders())
        answer = await self._ask(request, BegunAnswer, self.limits.session_seconds)
        if not 1 <= (length := len(answer.session_id)) <= self.limits.title:
            raise IsthmusError(
                f"the agent's sessionId has {length} characters; expected 1 to {self.limits.title} of them"
            )
        self.session_id, self._is_muted = answer.session_id, False
        self._model = model_in(answer.config_options, answer.models) or self._model

    async def continue_session(self, session_id: str) -> None:
        """Resume or load a former session; what it sends of its past is left out.

        Raises:
            LoginRequiredError: a user must log in first.
            IsthmusError: the agent cannot, refused, ended, or did not answer in time.
        """
        sessions, folder = self.capabilities.session_capabilities, str(self.folder)
        servers, further = servers_for(self.more.servers, self.capabilities), self._further_folders()
        request: ResumeSessionRequest | LoadSessionRequest
        if sessions is not None and sessions.resume is not None:
            request = ResumeSessionRequest(session_id, folder, servers, further)
        elif self.capabilities.load_session:
            request = LoadSessionRequest(session_id, folder, servers, further)
        else:
            raise IsthmusError("the agent cannot load sessions")
        self.session_id = session_id
        answer = await self._ask(request, ContinuedAnswer, self.limits.load_seconds)
        self._model = model_in(answer.config_options, answer.models) or self._model
        if isinstance(request, LoadSessionRequest):
            await self._past_has_come()
        self._is_muted = False

    def _further_folders(self) -> tuple[str, ...] | None:
        """Return the further folders of the session, None without any.

        Raises:
            IsthmusError: there are some, and the agent takes none.
        """
        if not (folders := self.more.folders):
            return None
        sessions = self.capabilities.session_capabilities
        if sessions is None or sessions.additional_directories is None:
            names = ", ".join(map(str, folders))
            raise FoldersRefusedError(
                f"{self.launch.agent.title} works in one folder, and takes no further ones. Leave out {names}"
                " (additional_directories), or begin a session there"
            )
        return tuple(map(str, folders))

    async def _past_has_come(self) -> None:
        """Wait until a loaded session sends nothing more: some agents answer before they have sent its past."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.limits.load_seconds):
                while self._past.is_set():
                    self._past.clear()
                    await asyncio.sleep(self.limits.past_seconds)

    async def aclose(self) -> None:
        """End the agent."""
        work = list(self._work)
        for task in work:
            task.cancel()
        await self._link.aclose()
        await asyncio.gather(*work, return_exceptions=True)

    def require_free(self) -> None:
        """Check that the agent can take a prompt.

        Raises:
            TurnRunningError: it works for a task, or waits for its answer.
        """
        if self.turn is not None and not self.turn.is_abandoned:
            raise TurnRunningError(
                f"The agent is at work on task {self.turn.task_id} of this conversation, and takes one message after"
                " the other: wait for its end, answer its question, cancel it, or begin another conversation."
            )

    def prompt(self, task_id: str, blocks: tuple[ContentBlock, ...]) -> PromptTurn:
        """Begin a turn and return it.

        Raises:
            TurnRunningError: another one has not ended.
        """
        self.require_free()
        reader = UpdateReader(self.launch.agent, self.limits, model=lambda: self._model)
        turn = self.turn = PromptTurn(task_id, reader)
        self._begin(self._prompt(turn, PromptRequest(self.session_id, blocks)))
        return turn

    def abandon(self, turn: PromptTurn) -> None:
        """Cancel a turn in the background; an agent that does not react in time is ended."""
        if self.turn is turn and not turn.is_abandoned:
            turn.abandon()
            self._begin(self._cancel(turn))

    async def settled(self) -> None:
        """Wait until an abandoned turn has ended, which takes a limited time."""
        if self.turn is not None and self.turn.is_abandoned:
            await self.turn.has_ended.wait()

    # --- the handler of the connection ---

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request of the agent."""
        return await self._requests.answer(method, params)

    def notification(self, method: str, params: JsonObject) -> None:
        """Take an update; one that does not fit the protocol is left out."""
        if method != SessionNotification.METHOD:
            return
        try:
            received = from_json(SessionNotification, params)
        except DecodeError as error:
            self._malformed += 1
            if self._malformed == 1:
                log.warning("an update of %s is left out, later ones silently: %s", self.launch.command[0], error)
            return
        if self._is_muted:
            self._past.set()
        if isinstance(received.update, UsageUpdate):
            self.usage = StatedUsage.of(received.update) or self.usage
        elif isinstance(received.update, ConfigOptionsUpdate):
            self._model = model_in(to_camel_json(received.update)["configOptions"]) or self._model
        elif isinstance(received.update, CommandsUpdate):
            self.commands = received.update.available_commands[: self.limits.commands]
            self.has_commands.set()
        elif not self._is_muted and (turn := self._turn_of(received.session_id)) is not None:
            turn.add(received.update)

    def cancel(self, method: str, params: JsonObject) -> bool:
        """Leave it to the connection to end a request that the agent cancels."""
        return False

    def _turn_of(self, session_id: str) -> PromptTurn | None:
        return self.turn if session_id == self.session_id else None

    async def _make_room(self, size: int) -> None:
        if self.turn is not None:
            self.turn.received(size)
        limits = self.limits
        while self.turn is not None and self.turn.is_full(limits.waiting_updates, limits.waiting_bytes):
            await asyncio.sleep(POLL_SECONDS)

    # --- requests to the agent ---

    async def _ask(self, request: ClientRequest, kind: type[ResponseT], seconds: float | None) -> ResponseT:
        try:
            return await self._link.ask(request, kind, seconds)
        except LoginRequiredError as error:
            is_known = bool(self.launch.agent.id)
            if not self.auth_methods and not is_known:  # JSON-RPC leaves the meaning of this code to the agent
                raise RpcError(AUTH_REQUIRED, str(error)) from error
            error.methods = self.auth_methods
            raise

    async def _prompt(self, turn: PromptTurn, request: PromptRequest) -> None:
        end = PromptEnd(error=AgentLostError("the agent's process was ended"))
        try:
            answer = await self._ask(request, PromptResponse, None)
            end = PromptEnd(answer.stop_reason, used=models_used(answer, self._model))
        except IsthmusError as error:
            end = PromptEnd(error=error)
        finally:
            if self.turn is turn:
                self.turn = None
            turn.add(end)

    async def _cancel(self, turn: PromptTurn) -> None:
        try:
            async with asyncio.timeout(self.limits.cancel_seconds):
                # The cancellation first: some agents take an answer for that of a user who refuses one call.
                await self._link.notify(CancelNotification(self.session_id), CancelNotification.METHOD)
                turn.answer_all()
                await turn.has_ended.wait()
        except TimeoutError:
            seconds = self.limits.cancel_seconds
            log.warning("%s did not stop within %g s; its process is ended", self.launch.command[0], seconds)
            self._link.kill()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="isthmus-acp-turn")
        self._work.add(task)
        task.add_done_callback(self._work.discard)
