"""Questions of tasks to the user of an MCP client, as elicitations. The answer is the user's; no tool gives one."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, cast

from isthmus.development_tool import ToolCall, ToolCallConfirmation
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.rpc import messages as rpc
from isthmus.rpc.pending import PendingRequests, RpcClosedError, RpcTimeoutError
from isthmus.terminal.questions.questions import question_of
from isthmus.text.diff import unified_diff
from isthmus.text.visible import visible

ANSWER_SECONDS = 600.0
"""Maximum time in seconds for the answer of the client's user."""
MAXIMUM_QUESTION = 50_000
"""Maximum number of characters that a question shows; a longer one cannot be judged, and is not asked."""


class NotChosen(Enum):
    """The reason why the client's user has not chosen any of the offered answers."""

    NOT_ASKED = "not asked"
    """The client cannot ask its user, or not this question."""
    DISMISSED = "dismissed"
    """The user declined, or closed the question."""


class ClientQuestions:
    """Questions to the user of one client. ``send`` sends a message to it."""

    def __init__(self, send: Callable[[JsonObject], Awaitable[None]]) -> None:
        self._send = send
        self._pending = PendingRequests()
        self._ids = itertools.count(1)
        self._can_ask = False

    def initialized(self, params: object) -> None:
        """Learn from the parameters of initialize whether the client has elicitations by forms.

        An empty declaration means forms.
        """
        given: object = cast("dict[str, Any]", params).get("capabilities") if isinstance(params, dict) else None
        kinds: object = cast("dict[str, Any]", given).get("elicitation") if isinstance(given, dict) else None
        self._can_ask = isinstance(kinds, dict) and (not kinds or "form" in kinds)

    def took(self, message: JsonObject) -> bool:
        """Take a message if it is a response to a question."""
        if "method" in message or not isinstance(number := message.get("id"), int):
            return False
        if "result" in message:
            self._pending.resolve(number, message["result"])
        else:
            self._pending.fail(number, RpcClosedError("the client cannot ask its user"))
        return True

    def may_ask(self, call: ToolCall) -> bool:
        """Return whether the client's user can be asked about a call."""
        return self._can_ask and bool(_choices(call)) and len(shown(call)) <= MAXIMUM_QUESTION

    async def answer(self, call: ToolCall) -> ToolCallConfirmation | NotChosen:
        """Ask the client's user about a call. If the caller is cancelled, the client closes the question."""
        if not self.may_ask(call):
            return NotChosen.NOT_ASKED
        choices, number = _choices(call), next(self._ids)
        answer = {"type": "string", "title": "Answer", "enum": list(choices)}
        schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        request = rpc.request(number, "elicitation/create", {"message": shown(call), "requestedSchema": schema})
        try:
            result: object = await self._pending.wait(
                number, "elicitation/create", ANSWER_SECONDS, lambda: self._send(request)
            )
        except asyncio.CancelledError:
            await self._withdraw(number)
            raise
        except (IsthmusError, OSError) as error:
            if isinstance(error, RpcTimeoutError):
                await self._withdraw(number)
            return NotChosen.NOT_ASKED
        given = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
        content: object = given.get("content")
        name = cast("dict[str, Any]", content).get("answer") if isinstance(content, dict) else None
        if given.get("action") != "accept" or not isinstance(name, str) or name not in choices:
            return NotChosen.DISMISSED
        return question_of(call).confirmation(choices[name])

    async def _withdraw(self, number: int) -> None:
        params = {"requestId": number, "reason": "the question was answered elsewhere, or is not waited for"}
        with contextlib.suppress(OSError):
            await self._send(rpc.notification("notifications/cancelled", params))


def _choices(call: ToolCall) -> dict[str, Any]:
    return {choice.name: choice for choice in question_of(call).choices if choice.option_id is not None}


def refusal_of(call: ToolCall) -> ToolCallConfirmation | None:
    """Return the answer that refuses a call; None if none of the offered ones does."""
    question = question_of(call)
    for choice in question.choices:
        if choice.is_refusal:
            return question.confirmation(choice)
    return None


def shown(call: ToolCall) -> str:
    """Return all that the user has to know, with stand-ins for characters that do not show."""
    request = call.confirmation_request
    lines = [call.description or call.tool_name]
    if request is not None and request.execute_details is not None:
        lines += [f"Command: {request.execute_details.command}"]
        if (trial := request.execute_details.trial) is not None:
            lines += [trial.changes]
    elif request is not None and request.file_edit_details is not None:
        diff = request.file_edit_details
        lines += [unified_diff(diff.old_content, diff.new_content, diff.file_path)]
    else:
        lines += [f"{call.tool_name} {json.dumps(call.input_parameters, ensure_ascii=False)}"]
    return visible("\n".join(lines))
