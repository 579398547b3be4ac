"""Serves the agent as an MCP server on two streams: ``isthmus mcp serve``. One tool runs a task and returns its answer.

Questions of the task go to the client's user as elicitations, if the client declares that it has them; otherwise they
are refused. The tools for the user's editor are in :mod:`isthmus.app.mcp_editor_tools`.
"""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

from isthmus import __version__
from isthmus.app.mcp_editor_tools import EDITOR_TOOLS, EditorTools
from isthmus.client import AgentClient, PromptMessage, TaskNotCancelable
from isthmus.conversations import find_session
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode_any_text
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, TaskState, ToolCallUpdate
from isthmus.ide.mcp.mcp_peer import CallTool, CallToolResult, CancelCall, McpPeer, Reply, ToolDefinition
from isthmus.rpc import messages as rpc
from isthmus.rpc.json_lines import LineFraming
from isthmus.rpc.pending import PendingRequests, RpcClosedError
from isthmus.task_stream import TaskStream
from isthmus.terminal.questions import question_of
from isthmus.text.diff import unified_diff
from isthmus.text.visible import visible

ANSWER_SECONDS = 600.0
"""Maximum time in seconds for the answer of the client's user."""
MAXIMUM_QUESTION = 50_000
"""Maximum number of characters that a question shows; a longer one cannot be judged, and is refused."""
MAXIMUM_NOTIFICATIONS = 1_000
"""Maximum number of notifications about the progress of one call."""
MAXIMUM_QUESTIONS = 1_000
"""Maximum number of questions of one call."""
RUN_TASK = ToolDefinition(
    "run_task",
    "Give a task in the folder of this server to a coding agent, and get its answer. It reads and edits files and runs"
    " commands; its user is asked before it changes something. The answer ends with the id of the session: pass it as"
    " session_id to go on with it.",
    {
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "description": "What to do, in words."},
            "session_id": {"type": "string", "description": "A session to go on with; left out for a new one."},
        },
        "required": ["prompt"],
    },
)


class AgentMcpServer:
    """The server side of one connection. ``write`` sends bytes; ``settings`` are those of each task's session.

    Without ``editor_tools`` it has only the tool that runs tasks.
    """

    def __init__(
        self,
        agent: AgentClient,
        settings: JsonObject,
        write: Callable[[bytes], Awaitable[None]],
        editor_tools: EditorTools | None = None,
    ) -> None:
        self._agent = agent
        self._editor_tools = editor_tools
        self._settings = settings
        self._write = write
        self._framing = LineFraming()
        # Listed even without an editor, which may come later: many clients read the list only once.
        tools = (RUN_TASK,) if editor_tools is None else (RUN_TASK, *EDITOR_TOOLS)
        self._peer = McpPeer("isthmus", __version__, tools)
        self._asks = False
        self._pending = PendingRequests()
        self._ids = itertools.count(1)
        self._calls: dict[rpc.RequestId, asyncio.Task[None]] = {}

    async def serve(self, chunks: AsyncIterator[bytes]) -> None:
        """Serve until the input ends; then cancel the tasks that still run."""
        try:
            async for data in chunks:
                for line in self._framing.feed(data):
                    if isinstance(line, bytes):
                        await self._receive(line)
                    else:
                        await self.send(rpc.error_response(None, line.code, line.text))
        finally:
            calls = list(self._calls.values())
            for call in calls:
                if not call.cancelling():  # a second time would break off the cancelling of its task
                    call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def send(self, message: JsonObject) -> None:
        """Send a message to the client."""
        await self._write(self._framing.frame(message))

    async def _receive(self, line: bytes) -> None:
        if self._took_response(line):
            return
        match self._peer.receive(line):
            case Reply(message):
                await self.send(message)
            case CallTool() as call:
                self._calls[call.request_id] = asyncio.create_task(self._run(call))
            case CancelCall(request_id) if request_id in self._calls:
                self._calls[request_id].cancel()
            case _:
                pass

    def _took_response(self, line: bytes) -> bool:
        """Take a response to an elicitation, and see in initialize whether the client has them."""
        try:
            value: object = decode_any_text(line)
        except JsonError:
            return False
        if not isinstance(value, dict):
            return False
        message = cast("dict[str, Any]", value)
        if message.get("method") == "initialize" and self._peer.client is None:
            self._asks = _has_forms(message.get("params"))
        if "method" in message or not isinstance(number := message.get("id"), int):
            return False
        if "result" in message:
            self._pending.resolve(number, message["result"])
        else:
            self._pending.fail(number, RpcClosedError("the client cannot ask its user"))
        return True

    async def _run(self, call: CallTool) -> None:
        progress = _Progress(self, call.progress_token)
        try:
            if self._editor_tools is None or call.name == RUN_TASK.name:
                result = await self._result(call.arguments, progress)
            else:
                result = await self._editor_tools.call(call.name, call.arguments, progress.say)
        except IsthmusError as error:
            result = CallToolResult.error(str(error))
        finally:
            self._calls.pop(call.request_id, None)
        if (message := self._peer.finish(call.request_id, result)) is not None:
            with contextlib.suppress(OSError):
                await self.send(message)

    async def _result(self, arguments: JsonObject, progress: "_Progress") -> CallToolResult:
        prompt, session_id = arguments.get("prompt"), arguments.get("session_id")
        if not isinstance(prompt, str) or not prompt.strip():
            return CallToolResult.error("expected prompt as a text that says what to do")
        if session_id is not None and not isinstance(session_id, str):
            return CallToolResult.error("expected session_id as a text")
        settings = self._settings
        if session_id is not None:
            # Otherwise an unknown id would begin a new session.
            session_id = (await find_session(self._agent, session_id, str(settings["workspace_path"]))).context_id
        turn = await self._agent.prompt(PromptMessage(prompt, context_id=session_id, settings=settings))
        stream = TaskStream(self._agent, turn.snapshot, turn)
        try:
            refused = await self._follow(stream, progress)
        except BaseException:
            await self._cancel(stream.task_id)
            raise
        view = stream.view
        is_done = view.state is TaskState.COMPLETED
        texts = [view.final_text if is_done else view.error or f"the task ended as {view.state.value}"]
        texts += [f"Refused, because no user could be asked: {what}" for what in refused]
        texts.append(f"Session: {stream.context_id}")
        return CallToolResult(tuple({"type": "text", "text": text} for text in texts), is_error=not is_done)

    async def _follow(self, stream: TaskStream, progress: "_Progress") -> list[str]:
        """Follow the task to its end, and have its questions answered; return those that could not be asked."""
        refused: list[str] = []
        for _ in range(MAXIMUM_QUESTIONS):
            async for delivery in stream.deliveries():
                await progress.event(delivery.event)
            if not stream.is_asking:
                return refused
            call = stream.view.questions[0].call
            answer = await self._answer(call)
            if answer is None:
                refused.append(visible(call.description or call.tool_name)[:200])
                answer = _refusal(call)
            if answer is None:
                break
            await stream.answer(answer, answered_by=self._peer.client.title if self._peer.client else "MCP client")
        await self._cancel(stream.task_id)
        async for _ in stream.deliveries():
            pass
        return refused

    async def _answer(self, call: ToolCall) -> ToolCallConfirmation | None:
        """Return the answer of the client's user; None if the user cannot be asked."""
        choices = {choice.name: choice for choice in question_of(call).choices if choice.option_id is not None}
        message = _shown(call)
        if not self._asks or not choices or len(message) > MAXIMUM_QUESTION:
            return None
        number = next(self._ids)
        answer = {"type": "string", "title": "Answer", "enum": list(choices)}
        schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        request = rpc.request(number, "elicitation/create", {"message": message, "requestedSchema": schema})
        try:
            result: object = await self._pending.wait(
                number, "elicitation/create", ANSWER_SECONDS, lambda: self.send(request)
            )
        except (IsthmusError, OSError):
            return None
        given = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
        content: object = given.get("content")
        name = cast("dict[str, Any]", content).get("answer") if isinstance(content, dict) else None
        if given.get("action") != "accept" or not isinstance(name, str) or name not in choices:
            return _refusal(call)
        return question_of(call).confirmation(choices[name])

    async def _cancel(self, task_id: str) -> None:
        with contextlib.suppress(TaskNotCancelable):
            await self._agent.cancel(task_id)


class _Progress:
    """Notifications about the progress of a call, each a line of text. Without a token, none."""

    def __init__(self, server: AgentMcpServer, token: rpc.RequestId | None) -> None:
        self._server = server
        self._token = token
        self._shown = set[str]()
        self._sent = 0

    async def event(self, event: AgentEvent) -> None:
        """Tell the client of a tool call that begins."""
        if not isinstance(event, ToolCallUpdate) or len(self._shown) >= MAXIMUM_NOTIFICATIONS:
            return
        call = event.tool_call
        if call.status is not ToolCallStatus.EXECUTING or call.tool_call_id in self._shown:
            return
        self._shown.add(call.tool_call_id)
        await self.say(f"{call.tool_name}: {call.description or ''}".rstrip(": "))

    async def say(self, text: str) -> None:
        """Tell the client a line of text."""
        if self._token is None or self._sent >= MAXIMUM_NOTIFICATIONS:
            return
        self._sent += 1
        params = {"progressToken": self._token, "progress": self._sent, "message": visible(text)[:200]}
        with contextlib.suppress(OSError):
            await self._server.send(rpc.notification("notifications/progress", params))


def _has_forms(params: object) -> bool:
    """Return whether the client declares elicitations by forms; an empty declaration means forms."""
    given: object = cast("dict[str, Any]", params).get("capabilities") if isinstance(params, dict) else None
    kinds: object = cast("dict[str, Any]", given).get("elicitation") if isinstance(given, dict) else None
    return isinstance(kinds, dict) and (not kinds or "form" in kinds)


def _refusal(call: ToolCall) -> ToolCallConfirmation | None:
    question = question_of(call)
    for choice in question.choices:
        if choice.is_refusal:
            return question.confirmation(choice)
    return None


def _shown(call: ToolCall) -> str:
    """Return all that the user has to know, with stand-ins for characters that do not show."""
    request = call.confirmation_request
    lines = [call.description or call.tool_name]
    if request is not None and request.execute_details is not None:
        lines += [f"Command: {request.execute_details.command}"]
    elif request is not None and request.file_edit_details is not None:
        diff = request.file_edit_details
        lines += [unified_diff(diff.old_content, diff.new_content, diff.file_path)]
    else:
        lines += [f"{call.tool_name} {json.dumps(call.input_parameters, ensure_ascii=False)}"]
    return visible("\n".join(lines))
