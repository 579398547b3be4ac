"""Any agent of the tests as an ACP agent: the one translation of its events, questions and ends into the protocol.

A hosted process (:mod:`support.acp_relay_program`) passes its standard streams on to here, where the agent runs with
its scripts, gates and counters. The wire is written as literals. What ACP has no words for is left out: artifacts,
notices, ids of texts, the kinds of errors.
"""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import (
    ConfirmationOption,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
)
from isthmus.engine.port.agents import Agent
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import ModelReply
from isthmus.models.port.base import Text
from isthmus.models.port.message import message_from_json

LINE_BYTES = 64 * 1024 * 1024
KINDS = {"proceed_once": "allow_once", "cancel": "reject_once"}
"""Kinds of options by id; every other one allows always."""
STATUSES = {
    ToolCallStatus.PENDING: "pending",
    ToolCallStatus.EXECUTING: "in_progress",
    ToolCallStatus.SUCCEEDED: "completed",
    ToolCallStatus.FAILED: "failed",
    ToolCallStatus.CANCELLED: "failed",
}
ANSWER = (ConfirmationOption("proceed_once", "I have answered"), ConfirmationOption("cancel", "Not now"))
"""Options of a question that an agent asks in its text: ACP has questions about calls alone."""
_NUMBERS = itertools.count(1)


@dataclass(slots=True)
class PlayedAgent:
    """The agent, its sessions, which outlive its processes, and the port where these connect."""

    agent: Agent
    sessions: dict[str, Session]
    listener: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))
    _server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port where the processes connect."""
        return int(self.listener.getsockname()[1])

    async def start(self) -> None:
        """Accept the connections of processes."""
        if self._server is None:
            self._server = await asyncio.start_server(self._play, sock=self.listener, limit=LINE_BYTES)

    async def aclose(self) -> None:
        """Stop; the processes have ended."""
        if self._server is None:
            self.listener.close()
        else:
            self._server.close()
            await self._server.wait_closed()

    async def _play(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        process = _Process(self, writer)
        try:
            while line := await reader.readline():
                process.receive(json.loads(line))
        except ConnectionError:
            pass
        finally:
            await process.end()
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


class _Cancelled(Exception):
    """The client has cancelled the turn."""


class _Process:
    """One process of the agent, which has one session."""

    def __init__(self, played: PlayedAgent, writer: asyncio.StreamWriter) -> None:
        self._played = played
        self._writer = writer
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._questions: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._turn: asyncio.Task[None] | None = None
        self._unsent: list[bytes] = []
        self._session_id = ""
        self._calls: set[str] = set()
        self._said: set[str] = set()

    # --- the wire ---

    def receive(self, message: dict[str, Any]) -> None:
        """Take a message of the client."""
        params: dict[str, Any] = message.get("params") or {}
        match message.get("method"):
            case "initialize":
                abilities = {"loadSession": True, "promptCapabilities": {"image": True, "embeddedContext": True}}
                methods = [{"id": "site", "name": "Log in to the site"}]
                result = {"protocolVersion": 1, "agentCapabilities": abilities, "authMethods": methods}
                self._answer(message["id"], result)
            case "session/new":
                self._session_id = f"session-{next(_NUMBERS)}"
                session = self._played.sessions[self._session_id] = Session(self._session_id)
                session.workspace = params["cwd"]
                self._answer(message["id"], {"sessionId": self._session_id})
            case "session/load":
                self._session_id = params["sessionId"]
                if self._session_id in self._played.sessions:
                    self._answer(message["id"], None)
                else:
                    self._send({"id": message["id"], "error": {"code": -32603, "message": "No previous sessions"}})
            case "session/prompt":
                self._turn = asyncio.create_task(self._prompted(message["id"], params["prompt"]))
            case "session/cancel":
                if self._turn is not None:
                    self._turn.cancel()
            case None:
                if (waiting := self._waiting.pop(message["id"], None)) is not None and not waiting.done():
                    waiting.set_result(message)
            case _:
                pass

    async def end(self) -> None:
        """Stop what works."""
        if self._turn is not None:
            self._turn.cancel()
            await asyncio.gather(self._turn, return_exceptions=True)

    def _send(self, message: Mapping[str, Any]) -> None:
        """Send a message, together with others of this step of the event loop."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _flush(self) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        if not self._writer.is_closing():
            self._writer.write(data)

    def _answer(self, number: int, result: object) -> None:
        self._send({"id": number, "result": result})

    def _ask(self, method: str, /, **params: Any) -> asyncio.Future[dict[str, Any]]:
        number = f"a{next(_NUMBERS)}"
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": {"sessionId": self._session_id, **params}})
        return future

    def _update(self, kind: str, /, **members: Any) -> None:
        update = {"sessionUpdate": kind, **members}
        self._send({"method": "session/update", "params": {"sessionId": self._session_id, "update": update}})

    # --- turns ---

    async def _prompted(self, number: int, blocks: Sequence[dict[str, Any]]) -> None:
        try:
            end = await self._work("".join(block.get("text", "") for block in blocks))
        except (asyncio.CancelledError, _Cancelled):
            self._answer(number, {"stopReason": "cancelled"})
            return
        except Exception as error:  # a broken agent is part of some tests
            end = StateChange(TaskState.FAILED, f"{type(error).__name__}: {error}")
        finally:
            for question in self._questions.values():
                question.cancel()
            self._questions.clear()
        match end.state:
            case TaskState.FAILED:
                self._send({"id": number, "error": {"code": -32603, "message": end.error or "failed"}})
            case TaskState.AUTH_REQUIRED:
                self._send({"id": number, "error": {"code": -32000, "message": end.error or "Authentication required"}})
            case TaskState.CANCELED:
                self._answer(number, {"stopReason": "cancelled"})
            case _:
                self._answer(number, {"stopReason": "end_turn"})

    async def _work(self, text: str) -> StateChange:
        """Run the agent until its work ends, and answer its questions meanwhile."""
        session, task_id = self._played.sessions[self._session_id], f"task-{next(_NUMBERS)}"
        self._calls.clear()
        self._said.clear()
        settings = {"workspace_path": session.workspace}
        session.apply(Prompt(f"prompt-{task_id}", text, settings), task_id)
        while True:
            end = session.apply(await self._played.agent.advance(AgentTurn(session, self._pass_on)))
            if end.state is not TaskState.INPUT_REQUIRED:
                return end
            if not session.calls.waiting:
                await self._ask_in_text(task_id)
                return StateChange(TaskState.COMPLETED)
            for confirmation in await self._answers():
                session.apply(ConfirmationAccepted(confirmation, "the client"))

    async def _answers(self) -> Sequence[ToolCallConfirmation]:
        """Wait for an answer, and return all that have come."""
        await asyncio.wait(self._questions.values(), return_when=asyncio.FIRST_COMPLETED)
        found: list[ToolCallConfirmation] = []
        for call_id, question in list(self._questions.items()):
            if question.done():
                del self._questions[call_id]
                found.append(ToolCallConfirmation(call_id, _chosen(question.result())))
        return found

    async def _ask_in_text(self, task_id: str) -> None:
        call = {"toolCallId": f"answer-{task_id}", "title": "Answer the agent", "kind": "other", "status": "pending"}
        _chosen(await self._ask("session/request_permission", toolCall=call, options=_options(ANSWER)))

    async def _pass_on(self, event: AgentEvent) -> None:
        """Send an event of the agent."""
        match event:
            case TextContent(message_id, text):
                self._say(message_id, text)
            case AgentMessage(message_id, text, was_streamed):
                if not was_streamed:
                    self._say(message_id, text)
            case ModelReply(message_id) if message_id not in self._said:
                parts = message_from_json(event.message).parts
                if text := "".join(part.text for part in parts if isinstance(part, Text)):
                    self._say(message_id, text)
            case Thought(thought):
                text = f"**{thought.subject}** {thought.description}"
                self._update("agent_thought_chunk", content={"type": "text", "text": text})
            case ToolCallUpdate(call):
                await self._call(call)
            case _:
                pass

    def _say(self, message_id: str, text: str) -> None:
        self._said.add(message_id)
        self._update("agent_message_chunk", messageId=message_id, content={"type": "text", "text": text})

    async def _call(self, call: ToolCall) -> None:
        stated = self._stated(call)
        if call.confirmation_request is not None:
            self._calls.add(call.tool_call_id)
            options = _options(call.confirmation_request.options)
            question = self._ask("session/request_permission", toolCall=stated, options=options)
            self._questions[call.tool_call_id] = question
            return
        diff = call.output.diff if call.output is not None else None
        if call.status is ToolCallStatus.SUCCEEDED and diff is not None:
            written = self._ask("fs/write_text_file", path=self._path(diff), content=diff.new_content)
            if (error := (await written).get("error")) is not None:
                stated |= {"status": "failed", "content": [_text(error["message"])]}
        if (question := self._questions.pop(call.tool_call_id, None)) is not None:
            question.cancel()
        self._update("tool_call_update" if call.tool_call_id in self._calls else "tool_call", **stated)
        self._calls.add(call.tool_call_id)

    def _stated(self, call: ToolCall) -> dict[str, Any]:
        """Return a call as ACP writes it."""
        request = call.confirmation_request
        title, kind, content = call.description or call.tool_name, "other", list[dict[str, Any]]()
        match request.details if request is not None else None:
            case FileDiff() as diff:
                self._prepare(diff)
                kind, content = "edit", [self._diff(diff)]
            case ExecuteDetails(command):
                title, kind = command, "execute"
            case McpDetails(server, tool):
                title = f"{tool} ({server} MCP Server)"
            case GenericDetails(description):
                title = description
            case None:
                pass
        if call.output is not None:
            content = [self._diff(call.output.diff)] if call.output.diff is not None else content
            content = [_text(call.output.text)] if call.output.text else content
        if call.error is not None:
            content = [_text(call.error.message)]
        if call.live_content is not None:
            content = [_text(call.live_content)]
        stated: dict[str, Any] = {"toolCallId": call.tool_call_id, "status": STATUSES[call.status], "content": content}
        if request is not None or call.tool_call_id not in self._calls:
            meta = {"tool": call.tool_name}
            stated |= {"title": title, "kind": kind, "rawInput": call.input_parameters, "_meta": meta}
        if call.output is not None and call.output.structured_data is not None:
            stated["rawOutput"] = call.output.structured_data
        return stated

    def _diff(self, diff: FileDiff) -> dict[str, Any]:
        return {"type": "diff", "path": self._path(diff), "oldText": diff.old_content, "newText": diff.new_content}

    def _prepare(self, diff: FileDiff) -> None:
        """Give the file the text that the script says it has."""
        if diff.old_content is not None:
            Path(self._path(diff)).write_text(diff.old_content, encoding="utf-8")

    def _path(self, diff: FileDiff) -> str:
        return str(Path(self._played.sessions[self._session_id].workspace) / diff.file_name)


def _options(options: Sequence[ConfirmationOption]) -> list[dict[str, str]]:
    return [{"optionId": item.id, "name": item.name, "kind": KINDS.get(item.id, "allow_always")} for item in options]


def _chosen(answer: Mapping[str, Any]) -> str:
    """Return the option of an answer to a question."""
    outcome = answer["result"]["outcome"]
    if outcome["outcome"] == "cancelled":
        raise _Cancelled
    return str(outcome["optionId"])


def _text(text: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": text}}
