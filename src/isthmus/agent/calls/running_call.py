"""A running tool call: an asyncio task, and a queue of the progress and questions of its tool.

A turn reads the queue. When the call asks, the turn ends, and the next turn goes on reading once the question is
answered. Only the latest progress is kept.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.development_tool import McpDetails, ToolCall, ToolCallConfirmation
from isthmus.record import record
from isthmus.runtime.telemetry import NO_TELEMETRY, Telemetry, ToolRun
from isthmus.tools.port.base import (
    Approved,
    Arguments,
    CallContext,
    DelegatingTool,
    Tool,
    ToolContext,
    ToolFailed,
    ToolResult,
    ToolSucceeded,
    ToolWaits,
)
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.user_question import NoAnswer, Reply, UserQuestion

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)


@record
class Progress:
    """The whole output so far."""

    text: str


class OpenQuestion:
    """A question of a running call, and its reply. The first reply counts."""

    def __init__(self, question: UserQuestion) -> None:
        self.question = question
        self.on_withdrawn: Callable[[], None] | None = None
        """Called once when the question is withdrawn and need not be shown any longer."""
        self._reply: Reply | None = None
        self._has_reply = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether no reply is known yet."""
        return self._reply is None

    @property
    def withdrawn(self) -> str:
        """The reason why there is no answer; empty while the question is open, and once it is answered."""
        return self._reply.reason if isinstance(self._reply, NoAnswer) else ""

    def answer(self, reply: Reply) -> None:
        """Give the reply."""
        if self._reply is None:
            self._reply = reply
            self._has_reply.set()

    def withdraw(self, reason: str) -> None:
        """End the question without an answer."""
        if self._reply is None:
            self.answer(NoAnswer(reason))
            if self.on_withdrawn is not None:
                self.on_withdrawn()

    async def wait(self) -> Reply:
        """Wait for the reply and return it."""
        await self._has_reply.wait()
        return self._reply or NoAnswer("There was no answer")


CallEvent: TypeAlias = Progress | OpenQuestion | ToolResult | ToolWaits


class RunningCall:
    """A call from its start to its result.

    ``call`` is its state while it runs, ``checkpoint_id`` the checkpoint taken for it, if any.
    """

    def __init__(self, call: ToolCall, checkpoint_id: str | None = None) -> None:
        self.call = call
        self.checkpoint_id = checkpoint_id
        self.files_before: Mapping[str, str] = {}
        """Digests of the files that were as the model knows them when the call began, by path."""
        self._task: asyncio.Task[ToolResult | ToolWaits] | None = None
        self._progress: Progress | None = None
        self._questions: deque[OpenQuestion] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def start(
        self,
        tool: Tool,
        arguments: Arguments,
        place: ToolContext,
        approved: Approved,
        answers: Mapping[str, ToolCallConfirmation] = MappingProxyType({}),
        telemetry: Telemetry = NO_TELEMETRY,
    ) -> None:
        """Start the tool in an asyncio task. ``answers`` are for the task that a delegating tool follows."""
        context = CallContext.of(place, approved, self._show, self._ask)
        work = (
            tool.follow(arguments, context, answers)
            if isinstance(tool, DelegatingTool)
            else tool.run(arguments, context)
        )
        server = approved.details.server_name if isinstance(approved.details, McpDetails) else ""
        run = ToolRun(tool.name, tool.kind.value, place.tool_call_id, server)
        self._task = asyncio.create_task(_measured(work, run, telemetry), name=f"isthmus-call-{place.tool_call_id}")
        self._task.add_done_callback(lambda _: self._notify())

    async def next_event(self) -> CallEvent:
        """Wait for the next event of the call and return it: progress, a question, the result, or that it waits.

        Raises:
            ToolFailure: the tool gave up.
        """
        task = self._task
        if task is None:
            raise RuntimeError("the call was not started")
        while True:
            if self._progress is not None:
                progress, self._progress = self._progress, None
                return progress
            while self._questions:
                question = self._questions.popleft()
                if question.is_open:
                    return question
            if task.done():
                return task.result()
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    async def stop(self) -> None:
        """Cancel the task unless it is done, and wait until it has ended. Its questions are withdrawn."""
        task = self._task
        if task is None:
            return
        if not task.done():
            task.cancel()
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError:
                task.cancel()  # The caller is cancelled, too.
                raise
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ToolFailure):
            log.error("the call %s did not end well", self.call.tool_call_id, exc_info=error)

    def _show(self, text: str) -> None:
        self._progress = Progress(text)
        self._notify()

    async def _ask(self, question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
        asked = OpenQuestion(question)

        def withdraw(reason: "asyncio.Future[str]") -> None:
            if not reason.cancelled():
                asked.withdraw(reason.result())

        if withdrawn is not None:
            withdrawn.add_done_callback(withdraw)
        self._questions.append(asked)
        self._notify()
        try:
            return await asked.wait()
        finally:
            if withdrawn is not None:
                withdrawn.remove_done_callback(withdraw)
            asked.withdraw("The tool does not wait for an answer any more")

    def _notify(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def _measured(
    work: Coroutine[Any, Any, ToolResult | ToolWaits], run: ToolRun, telemetry: Telemetry
) -> ToolResult | ToolWaits:
    with telemetry.measure(run):
        try:
            result = await work
        except asyncio.CancelledError:
            run.status = "canceled"
            raise
        except BaseException as error:
            run.status, run.failure = "failed", error.category if isinstance(error, ToolFailure) else "internal_error"
            raise
        match result:
            case ToolSucceeded():
                run.status = "succeeded"
            case ToolFailed(error):
                run.status, run.failure = "failed", error.type or ""
            case ToolWaits():
                run.status = "waiting"
        return result
