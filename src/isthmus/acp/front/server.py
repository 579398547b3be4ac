"""An agent client in front of one client of ACP: the requests that a client sends, and the sessions that they name.

Folders, MCP servers, trust and deletion are the business of :class:`~isthmus.acp.front.place.FrontPlace`: they differ
between an agent in this process and one behind a server.
"""

import logging
import re
import uuid
from collections import deque
from collections.abc import Awaitable, Sequence
from dataclasses import field
from pathlib import Path

from isthmus.acp.connection import CANCELLED, AcpConnection
from isthmus.acp.front.further_folders import of_this_request
from isthmus.acp.front.login import FrontLogin
from isthmus.acp.front.place import FrontPlace
from isthmus.acp.front.questions import ClientQuestion
from isthmus.acp.front.session import FrontSession
from isthmus.acp.front.session_list import listed_sessions
from isthmus.acp.front.session_options import SessionOptions
from isthmus.acp.front.turn import ClientPort
from isthmus.acp.front.wire import FrontAbilities, FrontUpdate, FrontWire, read_params
from isthmus.acp.front.wire_v1 import FrontWireV1
from isthmus.acp.v1 import connection, sessions
from isthmus.acp.v1.client_requests import ReadTextFileRequest, ReadTextFileResponse
from isthmus.acp.v1.updates import CompactionUpdate, ConfigOptionsUpdate, ModeUpdate
from isthmus.client import AgentClient, TaskNotFound, TaskQuery, TaskSnapshot
from isthmus.encoding.codec import JsonObject, from_json, to_camel_json
from isthmus.errors import DecodeError, IsthmusError
from isthmus.fronts.task_stream import FrontTimeouts
from isthmus.record import record
from isthmus.rpc.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from isthmus.runtime.running_tasks import RunningTasks

log = logging.getLogger(__name__)

RESOURCE_NOT_FOUND = -32002
READ_SECONDS = 2.0
"""Maximum wait for a client to read a file of its editor."""
MAXIMUM_SESSIONS = 1000
"""Maximum number of sessions that one client has open at the same time."""
DELETED_SESSIONS = 1000
"""Maximum number of deleted sessions that are remembered, so that a client that loads one by mistake is told."""
_NEW_ID = re.compile(r"session-[0-9a-f]{32}")
"""Ids that this module gives to new sessions. A new session exists before its first prompt, though no agent has it."""


@record
class FrontOptions:
    """Options of a front. ``can_delete`` and ``can_fork``: its place deletes and copies sessions.

    ``takes_folders``: its agent works in further folders of a session.
    """

    version: str
    options: SessionOptions = field(default_factory=SessionOptions)
    can_delete: bool = False
    can_fork: bool = False
    takes_images: bool = True
    takes_folders: bool = True
    auth_methods: tuple[connection.TerminalAuth | connection.AgentAuth, ...] = ()
    timeouts: FrontTimeouts = field(default_factory=FrontTimeouts)
    wires: tuple[FrontWire, ...] = (FrontWireV1(),)
    """Versions of the protocol that a client can choose; the first one is used if it asks for none of them."""


class FrontServer:
    """Carries out a client's requests; the handler of an :class:`~isthmus.acp.connection.AcpConnection`."""

    def __init__(self, agent: AgentClient, place: FrontPlace, options: FrontOptions) -> None:
        self._agent = agent
        self._place = place
        self._options = options
        self._client: AcpConnection | None = None
        self._wire = options.wires[0]
        self._is_initialized = False
        self._login = FrontLogin(options.auth_methods)
        self._capabilities = connection.ClientCapabilities()
        self._client_name = "ACP"
        self._sessions: dict[str, FrontSession] = {}
        self._deleted: deque[str] = deque(maxlen=DELETED_SESSIONS)
        """Deleted sessions whose ids would otherwise stand for new ones."""
        self._later = RunningTasks()

    def attach(self, client: AcpConnection) -> None:
        """Set the connection to the client."""
        self._client = client

    # --- RequestHandler ---

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request."""
        if method == connection.InitializeRequest.METHOD:
            return self._initialize(params)
        match self._wire.read(method, params):
            case connection.AuthenticateRequest() as request:
                self._login.authenticate(request)
                return {}
            case sessions.NewSessionRequest() as request:
                return await self._new(request)
            case sessions.LoadSessionRequest() as request:
                return await self._load(request)
            case sessions.ResumeSessionRequest() as request:
                return await self._resume(request)
            case sessions.ForkSessionRequest() as request if self._options.can_fork:
                return await self._fork(request)
            case sessions.ListSessionsRequest() as request:
                return await listed_sessions(self._agent, self._place, request)
            case sessions.PromptRequest() as request:
                return await self._prompt(request)
            case sessions.SetModeRequest() as request:
                return await self._set_mode(request)
            case sessions.SetConfigOptionRequest() as request:
                return await self._set_option(request)
            case sessions.CloseSessionRequest() as request:
                return await self._close(request)
            case sessions.DeleteSessionRequest() as request if self._options.can_delete:
                return await self._delete(request)
            case connection.LogoutRequest():
                self._login.log_out()
                return {}
            case sessions.DeleteSessionRequest() | sessions.ForkSessionRequest() | None:
                raise RpcError(METHOD_NOT_FOUND, f"there is no method {method[:100]!r} here")

    def notification(self, method: str, params: JsonObject) -> None:
        """Take a notification; unknown ones are ignored."""
        if method != sessions.CancelNotification.METHOD:
            return
        try:
            session = self._sessions.get(read_params(sessions.CancelNotification, params).session_id)
        except DecodeError as error:
            log.warning("%s", error)
            return
        if session is not None:
            self._do_later(session.cancel())

    def cancel(self, method: str, params: JsonObject) -> bool:
        """Cancel the turn of a prompt whose request the client cancels."""
        if method != sessions.PromptRequest.METHOD:
            return False
        self.notification(sessions.CancelNotification.METHOD, {"sessionId": params.get("sessionId")})
        return True

    async def editor_text(self, path: Path) -> str | None:
        """Return the text of a file as the client's editor shows it; None if it does not say within a short time."""
        files = self._capabilities.fs
        if files is None or not files.read_text_file or self._client is None:
            return None
        session = next((each for each in self._sessions.values() if path.is_relative_to(each.workspace)), None)
        if session is None:
            return None
        request = ReadTextFileRequest(session.session_id, str(path))
        try:
            result = await self._client.request(request.METHOD, to_camel_json(request), timeout=READ_SECONDS)
            return from_json(ReadTextFileResponse, result).content
        except IsthmusError as error:
            log.info("The client did not read %s: %s", path, error)
            return None

    async def aclose(self) -> None:
        """Let go of all sessions; their turns belong to the agent."""
        await self._later.cancel()
        for session in self._sessions.values():
            await session.aclose()

    # --- requests ---

    def _initialize(self, params: JsonObject) -> JsonObject:
        asked = params.get("protocolVersion")
        # A connection that is initialized keeps its version: its client has messages of that one, and waits for more.
        wires = (self._wire,) if self._is_initialized else self._options.wires
        wire = next((wire for wire in wires if wire.version == asked), wires[0])
        request = wire.read_initialize(params)
        self._wire, self._is_initialized = wire, True
        self._capabilities = request.client_capabilities or self._capabilities
        if request.client_info is not None:
            self._client_name = (request.client_info.title or request.client_info.name)[:100] or self._client_name
        options, methods = self._options, self._login.methods_for(self._capabilities)
        can = (options.can_delete, options.takes_images, methods, options.can_fork, options.takes_folders)
        return wire.greeting(FrontAbilities(options.version, *can))

    async def _new(self, request: sessions.NewSessionRequest) -> JsonObject:
        settings = await self._settings(request)
        session = self._open(_new_id(), settings)
        if session.options.is_elsewhere:  # here it is known, apart from what the folder forbids: see the first prompt
            await session.find_mode(is_new=True)
        self._do_later(session.load_commands())
        return self._wire.session(session.session_id, session.options)

    async def _load(self, request: sessions.LoadSessionRequest) -> JsonObject:
        session = await self._reopen(request.session_id, await self._settings(request))
        await session.replay()
        return self._opened(session)

    async def _resume(self, request: sessions.ResumeSessionRequest) -> JsonObject:
        session = await self._reopen(request.session_id, await self._settings(request))
        await session.resume()
        return self._opened(session)

    async def _fork(self, request: sessions.ForkSessionRequest) -> JsonObject:
        settings = await self._settings(request)
        tasks = await self._tasks_here(request.session_id, settings)
        session_id = _new_id()
        if tasks:
            await self._place.fork(request.session_id, session_id)
        session = self._open(session_id, settings)
        await session.find_mode(is_new=not tasks)
        self._do_later(session.tell_usage())
        self._do_later(session.load_commands())
        return self._wire.session(session_id, session.options)

    def _opened(self, session: FrontSession) -> JsonObject:
        async def go_on() -> None:
            await session.go_on()
            await session.tell_usage()
            await session.load_commands()

        self._do_later(go_on())  # after the response
        return self._wire.session(None, session.options)

    async def _prompt(self, request: sessions.PromptRequest) -> JsonObject:
        session = self._session(request.session_id)
        begun = await session.begin_prompt(request.prompt, lambda: self._ask_first(session))
        early = self._wire.acknowledgement(begun.message_id or "")
        if early is not None and begun.message_id is not None:
            self._do_later(session.finish_prompt(begun))  # after the response
            return early
        response = await session.finish_prompt(begun)
        if early is not None:
            raise RpcError(CANCELLED, "session/prompt was cancelled before it began")
        return to_camel_json(response)

    async def _set_mode(self, request: sessions.SetModeRequest) -> JsonObject:
        session = self._session(request.session_id)
        session.options = session.options.with_mode(request.mode_id)
        await self._update(session.session_id, ConfigOptionsUpdate(session.options.config_options))
        return {}

    async def _set_option(self, request: sessions.SetConfigOptionRequest) -> JsonObject:
        session = self._session(request.session_id)
        before = session.options.mode
        session.options = session.options.with_value(request.config_id, request.value)
        if session.options.mode != before:
            await self._update(session.session_id, ModeUpdate(session.options.mode))
        return self._wire.options(session.options)

    async def _close(self, request: sessions.CloseSessionRequest) -> JsonObject:
        session = self._session(request.session_id)
        del self._sessions[session.session_id]  # first, or it would take another prompt meanwhile
        await session.close()
        return {}

    async def _delete(self, request: sessions.DeleteSessionRequest) -> JsonObject:
        if (session := self._sessions.pop(request.session_id, None)) is not None:
            await session.close()
        await self._place.delete(request.session_id)
        if _NEW_ID.fullmatch(request.session_id) is not None:
            self._deleted.append(request.session_id)
        return {}

    # --- inside ---

    async def _ask_first(self, session: FrontSession) -> None:
        """Ask what must be decided before a prompt in a folder; without an answer it stays undecided."""
        try:
            await self._place.before_prompt(session.workspace, session.session_id, self._ask)
        except (RpcError, DecodeError) as error:
            log.warning("The client did not ask the user about %s: %s", session.workspace, error)
        if folders := session.further_folders:
            try:
                refused = await self._place.refused_folders(session.workspace, folders, session.session_id, self._ask)
            except (RpcError, DecodeError) as error:
                log.warning("The client did not ask the user about further folders: %s", error)
                refused = folders
            if refused:
                await session.leave_out(refused)

    async def _settings(
        self,
        request: sessions.NewSessionRequest
        | sessions.LoadSessionRequest
        | sessions.ResumeSessionRequest
        | sessions.ForkSessionRequest,
    ) -> JsonObject:
        self._login.require()
        settings = self._place.settings(request.cwd, request.mcp_servers or (), request.additional_directories or ())
        if not isinstance(request, sessions.NewSessionRequest):
            settings = of_this_request(settings)
        await self._place.check(settings)
        return settings

    def _open(self, session_id: str, settings: JsonObject) -> FrontSession:
        if len(self._sessions) >= MAXIMUM_SESSIONS:
            raise RpcError(INVALID_PARAMS, f"{MAXIMUM_SESSIONS} sessions are open: close one")

        async def update(what: FrontUpdate) -> None:
            await self._update(session_id, what)

        shows = self._capabilities.elicitation or connection.ElicitationCapabilities()
        port = ClientPort(update, update, self._ask, shows, self._client_name)
        session = FrontSession(self._agent, port, session_id, settings, self._options.options, self._options.timeouts)
        self._sessions[session_id] = session
        return session

    async def _reopen(self, session_id: str, settings: JsonObject) -> FrontSession:
        """Return a session that the agent has, or that was never prompted.

        Raises:
            RpcError: there is no such session, or it works in another folder.
        """
        await self._tasks_here(session_id, settings)
        if (known := self._sessions.get(session_id)) is not None:
            known.change_settings(settings)
            return known
        return self._open(session_id, settings)

    async def _tasks_here(self, session_id: str, settings: JsonObject) -> Sequence[TaskSnapshot]:
        """Return the last task of a session, if it was prompted; raise as :meth:`_reopen` does."""
        try:
            tasks = (await self._agent.list_tasks(TaskQuery(1, session_id))).tasks
        except TaskNotFound:
            tasks = ()
        is_new = _NEW_ID.fullmatch(session_id) is not None and session_id not in self._deleted
        if not tasks and session_id not in self._sessions and not is_new:
            raise _not_found(session_id)
        folder = settings["workspace_path"]
        if tasks and tasks[0].workspace != folder:
            expected = tasks[0].workspace
            raise RpcError(INVALID_PARAMS, f"cwd: the session works in {expected}; expected this folder, not {folder}")
        return tasks

    def _session(self, session_id: str) -> FrontSession:
        if (session := self._sessions.get(session_id)) is None:
            raise _not_found(session_id)
        return session

    async def _update(self, session_id: str, update: FrontUpdate) -> None:
        if isinstance(update, CompactionUpdate) and not self._shows_compactions:
            return
        if self._client is not None:
            for written in self._wire.updates(update):
                await self._client.notify("session/update", {"sessionId": session_id, "update": written})

    @property
    def _shows_compactions(self) -> bool:
        """Whether the client takes compactions: in version 1 those that say so, later all."""
        session = self._capabilities.session
        return self._wire.version > 1 or (session is not None and session.compaction is not None)

    async def _ask(self, question: ClientQuestion) -> object:
        if self._client is None:
            raise RpcError(METHOD_NOT_FOUND, "there is no client to ask")
        return await self._client.request(question.METHOD, self._wire.question(question), timeout=None)

    def _do_later(self, work: Awaitable[object]) -> None:
        self._later.start(self._logged(work))

    async def _logged(self, work: Awaitable[object]) -> None:
        try:
            await work
        except IsthmusError as error:
            log.warning("%s", error)


def _new_id() -> str:
    return f"session-{uuid.uuid4().hex}"


def _not_found(session_id: str) -> RpcError:
    problem = f"there is no session {session_id[:100]!r}: begin one by session/new, or load one first"
    return RpcError(RESOURCE_NOT_FOUND, problem, {"sessionId": session_id[:100]})
