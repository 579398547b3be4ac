"""Client for the slash commands of a server: ``commands/get`` and ``command/execute`` of the extension (section 3.3).

Servers of the dialect coderAgent have ``/listCommands`` and ``/executeCommand`` instead; others have no commands.
"""

import json
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import Any, cast

from typing_extensions import override

from isthmus.a2a.client.answers import RemoteError
from isthmus.a2a.client.connection import AgentConnection, ItemStream
from isthmus.a2a.client.discovery import ClientDialect
from isthmus.a2a.client.memory import RemoteTasks
from isthmus.a2a.client.retry import StreamRetryPolicy
from isthmus.a2a.client.streams import (
    ItemSource,
    StreamSource,
    TaskReader,
    decode_task,
    open_source,
)
from isthmus.a2a.client.wires import MethodCall
from isthmus.a2a.protocol.items import JsonMap, TaskItem, optional_object, optional_text
from isthmus.a2a.protocol.snapshots import snapshot_of
from isthmus.client import (
    CommandMessage,
    CommandScope,
    Delivery,
    Execution,
    InvalidRequest,
    TaskNotFound,
    TaskNotResumable,
    TaskSnapshot,
    Turn,
)
from isthmus.development_tool import (
    CommandExecutionStatus,
    ExecuteSlashCommandRequest,
    ExecuteSlashCommandResponse,
    GetAllSlashCommandsResponse,
    SlashCommand,
)
from isthmus.encoding.codec import from_json, to_json
from isthmus.errors import DecodeError
from isthmus.events import AgentMessage, StateChange, TaskState
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError
from isthmus.session_status import SessionStatus

LIST = "commands/get"
EXECUTE = "command/execute"
STATUS = "isthmus/session"


class RemoteCommands:
    """The slash commands of one server."""

    def __init__(self, connection: AgentConnection, retry_policy: StreamRetryPolicy, memory: RemoteTasks) -> None:
        self._connection = connection
        self._retry_policy = retry_policy
        self._memory = memory

    async def list(self, scope: CommandScope) -> Sequence[SlashCommand]:
        """Return the commands as a tree; none if the server has no such method.

        Raises:
            RemoteError: the server cannot be reached, or answers with something else.
        """
        try:
            match self._memory.dialect:
                case ClientDialect.DEVELOPMENT_TOOL:
                    result = await self._connection.call(MethodCall(LIST, self._params(scope)))
                case ClientDialect.CODER_AGENT:
                    result = await self._list_by_path()
                case ClientDialect.PLAIN:
                    return ()
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return ()
        try:
            return tuple(_named(item) for item in from_json(GetAllSlashCommandsResponse, result).commands)
        except DecodeError as error:
            raise RemoteError(f"expected slash commands from {self._connection.url}: {error}") from error

    async def status(self, scope: CommandScope) -> SessionStatus:
        """Return the state of a session; nothing is known if the server has no such method.

        Raises:
            RemoteError: the server cannot be reached, or answers with something else.
        """
        if self._memory.dialect is not ClientDialect.DEVELOPMENT_TOOL:
            return SessionStatus()
        try:
            return from_json(SessionStatus, await self._connection.call(MethodCall(STATUS, self._params(scope))))
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return SessionStatus()
        except DecodeError as error:
            raise RemoteError(f"expected the state of a session from {self._connection.url}: {error}") from error

    async def execute(self, command: CommandMessage) -> Execution:
        """Start a command; the turn begins with the first event of its task.

        Raises:
            RemoteError: the server cannot be reached, or answers with something else.
            InvalidRequest: the server ended the command without an answer.
        """
        match self._memory.dialect:
            case ClientDialect.DEVELOPMENT_TOOL:
                return await self._execute(command)
            case ClientDialect.CODER_AGENT:
                return await self._execute_by_path(command)
            case ClientDialect.PLAIN:
                return _not_started("this agent has no slash commands")

    # --- With the extension -----------------------------------------------------------------------------------------

    def _params(self, scope: CommandScope) -> dict[str, Any]:
        extended = dict(scope.settings or {})
        extended.update(
            (name, value)
            for name, value in (("task_id", scope.task_id), ("context_id", scope.context_id))
            if value is not None
        )
        return {"metadata": {self._connection.activation.uri: extended}} if extended else {}

    async def _execute(self, command: CommandMessage) -> Execution:
        asked = to_json(ExecuteSlashCommandRequest(command.path, command.args))
        ask = MethodCall(EXECUTE, {**asked, **self._params(command.scope)})
        try:
            found = await self._connection.stream_or_result(ask)
        except RpcError as error:
            if error.code != METHOD_NOT_FOUND:
                raise
            return _not_started("this agent has no slash commands")
        if not isinstance(found, ItemStream):
            return await self._attached(self._response(found), None)
        try:
            first = await found.next()
            if first is None:
                raise RemoteError(f"{self._connection.url} ended the stream of {EXECUTE} without an answer")
            response = self._response(first[0])
        except BaseException:
            await found.aclose()
            raise
        return await self._attached(response, StreamSource(self._connection, found))

    def _response(self, result: object) -> ExecuteSlashCommandResponse:
        try:
            return from_json(ExecuteSlashCommandResponse, result)
        except DecodeError as error:
            raise RemoteError(f"expected the start of a command from {self._connection.url}: {error}") from error

    async def _attached(self, response: ExecuteSlashCommandResponse, source: ItemSource | None) -> Execution:
        """Return the execution with the events of its task, from ``source`` or by following the task from the start."""
        status = response.status
        if status is CommandExecutionStatus.FAILED_TO_START or not response.execution_id:
            if source is not None:
                await source.aclose()
            return Execution(CommandExecutionStatus.FAILED_TO_START, response.message)
        task_id = response.execution_id
        if source is None:
            source = await self._followed(task_id)
        decoder = self._memory.decoder(None)
        decoder.begin(TaskState.SUBMITTED)
        try:
            snapshot = await self._began(task_id)
        except BaseException:
            await source.aclose()
            raise
        reader = TaskReader(self._connection, decoder, self._retry_policy)
        turn = Turn(snapshot, reader.deliveries(source, task_id, 0, None), is_new=True)
        return Execution(status, response.message, turn)

    async def _followed(self, task_id: str) -> ItemSource:
        try:
            return await open_source(self._connection, self._connection.wire.follow(task_id), 0)
        except TaskNotResumable:
            # The task has already ended, and this server does not stream ended tasks: the Task has the result.
            return _Once(await self._task(task_id))

    async def _task(self, task_id: str) -> TaskItem:
        return decode_task(self._connection, await self._connection.call(self._connection.wire.get(task_id)))

    async def _began(self, task_id: str) -> TaskSnapshot:
        """Return the task before its first event."""
        try:
            now = snapshot_of(await self._task(task_id), self._connection.activation.uri)
        except TaskNotFound:
            return _fresh(task_id, "")
        began = replace(now, state=TaskState.SUBMITTED, seq=0, error=None, reason=None, pending=(), history=())
        return replace(began, updated_at=now.created_at)

    # --- In the dialect coderAgent ----------------------------------------------------------------------------------

    async def _list_by_path(self) -> object:
        found = await self._connection.resource("GET", "/listCommands")
        if isinstance(found, ItemStream):
            await found.aclose()
            return {}
        status, body = found
        if status != 200:
            raise RemoteError(f"{self._connection.url} does not list its commands: {_error_of(body, status)}")
        return body

    async def _execute_by_path(self, command: CommandMessage) -> Execution:
        body = {"command": " ".join(command.path), "args": [command.args] if command.args else []}
        found = await self._connection.resource("POST", "/executeCommand", body)
        if isinstance(found, ItemStream):
            return await self._streamed(found)
        status, content = found
        if status != 200:
            return _not_started(_error_of(content, status))
        data = (optional_object(content) or {}).get("data")
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, indent=2)
        now = time.time()
        output = (Delivery(None, now, AgentMessage("command", text)),) if text.strip() else ()
        done = Delivery(None, now, StateChange(TaskState.COMPLETED))
        return Execution(
            CommandExecutionStatus.STARTED, None, Turn(_fresh("", ""), _each((*output, done)), is_new=True)
        )

    async def _streamed(self, stream: ItemStream) -> Execution:
        source = StreamSource(self._connection, stream)
        decoder = self._memory.decoder(None)
        decoder.begin(TaskState.SUBMITTED)
        try:
            first = await source.next()
            if first is None:
                raise InvalidRequest(f"{self._connection.url} ended the command without an answer")
            item, seq = first
            reader = TaskReader(self._connection, decoder, self._retry_policy)
            begun = reader.decode(item, seq)
        except BaseException:
            await source.aclose()
            raise
        # The context of the task belongs to the command and takes no messages, so it is not a session.
        turn = Turn(_fresh(item.task_id, ""), reader.deliveries(source, item.task_id, None, begun), is_new=True)
        return Execution(CommandExecutionStatus.STARTED, None, turn)


class _Once(ItemSource):
    """A source with one item, a task."""

    def __init__(self, task: TaskItem) -> None:
        self._task: TaskItem | None = task

    @override
    async def next(self) -> tuple[TaskItem, None] | None:
        task, self._task = self._task, None
        return None if task is None else (task, None)

    @override
    async def finish(self) -> None:
        pass

    @override
    async def aclose(self) -> None:
        pass


def _named(command: SlashCommand) -> SlashCommand:
    """Return the command with plain names of its sub-commands, which some servers write as ``memory show``."""
    prefix = f"{command.name} "
    subs = (replace(sub, name=sub.name.removeprefix(prefix).strip() or sub.name) for sub in command.sub_commands)
    return replace(command, sub_commands=tuple(_named(sub) for sub in subs))


def _fresh(task_id: str, context_id: str) -> TaskSnapshot:
    now = time.time()
    return TaskSnapshot(task_id, context_id, TaskState.SUBMITTED, 0, "", now, now)


def _not_started(reason: str) -> Execution:
    return Execution(CommandExecutionStatus.FAILED_TO_START, reason)


def _error_of(body: object, status: int) -> str:
    error = cast("JsonMap", body).get("error") if optional_object(body) is not None else None
    return optional_text(error) or f"HTTP {status}"


async def _each(deliveries: Sequence[Delivery]) -> AsyncGenerator[Delivery, None]:
    for delivery in deliveries:
        yield delivery
