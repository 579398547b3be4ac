"""Operations on an agent: the one way in which every protocol version and dialect of the server meets a request.

Serves any :class:`~isthmus.client.AgentClient`. Deliberately not here: JSON, HTTP and the shape of answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from isthmus.a2a.extension import URI, Activation, IncompatibleExtensionError
from isthmus.a2a.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    RpcError,
)
from isthmus.a2a.operations import SendMessage
from isthmus.a2a.questions import answer_in_text
from isthmus.client import (
    AgentClient,
    InvalidRequest,
    PromptMessage,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
    Turn,
)
from isthmus.errors import IsthmusError
from isthmus.events import TaskState, ToolCallConfirmation

ANSWERED_BY = "A2A client"
"""Who answered, when the client does not say where its person sits."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A stretch of a task's life that a message began, and the calls that the message answered."""

    turn: Turn
    answered: frozenset[str] = frozenset()


class Service:
    """Messages to an agent, with what the extension demands of them and what plain clients are granted."""

    def __init__(self, agent: AgentClient) -> None:
        self._agent = agent

    async def send(self, message: SendMessage, activation: Activation) -> Opened:
        """Start or continue a task, or answer its questions.

        Raises:
            TaskError: the agent refuses, e.g. because it has not the workspace; no task is made then.
        """
        if message.confirmations and message.task_id is not None:
            return await self._answer(message, message.task_id, message.confirmations)
        if message.task_id is not None and not activation.active:
            answer = await self._plain_answer(message.task_id, message.text)
            if answer is not None:
                return await self._answer(message, message.task_id, (answer,))
        return Opened(await self._agent.prompt(_prompt(message, activation)))

    async def _answer(
        self, message: SendMessage, task_id: str, confirmations: Sequence[ToolCallConfirmation]
    ) -> Opened:
        turn = await self._agent.answer(
            task_id, confirmations, answered_by=message.answered_by or ANSWERED_BY, context_id=message.context_id
        )
        return Opened(turn, frozenset(confirmation.tool_call_id for confirmation in confirmations))

    async def _plain_answer(self, task_id: str, text: str) -> ToolCallConfirmation | None:
        snapshot = await self._agent.get(task_id, 0)
        return answer_in_text(text, snapshot.pending) if snapshot.state is TaskState.INPUT_REQUIRED else None


def rpc_error(error: IsthmusError) -> RpcError:
    """The JSON-RPC error that tells a client of an expected failure."""
    match error:
        case RpcError():
            return error
        case TaskNotFound():
            return RpcError(TASK_NOT_FOUND, str(error))
        case TaskNotCancelable():
            return RpcError(TASK_NOT_CANCELABLE, str(error))
        case TaskNotResumable():
            return RpcError(UNSUPPORTED_OPERATION, str(error))
        case InvalidRequest():
            return RpcError(INVALID_PARAMS, str(error))
        case IncompatibleExtensionError():
            return RpcError(INVALID_REQUEST, str(error), {"uri": URI})
        case _:
            return RpcError(INTERNAL_ERROR, str(error))


def _prompt(message: SendMessage, activation: Activation) -> PromptMessage:
    return PromptMessage(
        text=message.text,
        message_id=message.message_id,
        task_id=message.task_id,
        context_id=message.context_id,
        settings=message.settings,
        may_continue_completed=activation.active,
        requires_settings=activation.active,
    )
