"""A run without a user of several messages: one turn of the same session for each, as lines of JSON in and out.

A message is read when the turn before it has ended. The lines of a turn are as in ``-o stream-json``, from ``init`` to
``result``. A line that is refused ends the run, since later messages may depend on it.
"""

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TextIO

from isthmus.client import AgentClient
from isthmus.task_view import TaskView
from isthmus.terminal.headless.headless import ExitCode, HeadlessOptions, HeadlessRun
from isthmus.terminal.headless.headless_output import OutputStream, RunError, StreamJsonOutput
from isthmus.terminal.headless.input_messages import InputLineError, InputLines, InputMessage
from isthmus.terminal.signals import signal_handlers

NO_MESSAGE = (
    'no message came on the standard input; send lines such as {"type": "user", "message": {"role": "user", "content":'
    ' "Hello"}}'
)


async def run_stream(
    agent: AgentClient,
    options: HeadlessOptions,
    chunks: AsyncGenerator[bytes, None],
    stdout: TextIO | None,
    stderr: TextIO | None,
) -> int:
    """Run each message of ``chunks`` (bytes of the standard input) to its end, and return the exit code.

    It belongs to the first turn that did not complete. ``options.prompt`` is not used. SIGINT and SIGTERM cancel the
    turn under way, and end the run.
    """
    run = _StreamRun(agent, options, OutputStream(stdout), OutputStream(stderr))
    with signal_handlers({number: partial(run.interrupt, number) for number in (signal.SIGINT, signal.SIGTERM)}):
        async with aclosing(_messages(chunks)) as messages:
            return await run.to_the_end(messages)


async def _messages(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[InputMessage, None]:
    lines = InputLines()
    async with aclosing(chunks):
        async for data in chunks:
            for message in lines.feed(data):
                yield message
    for message in lines.end():
        yield message


@dataclass(slots=True)
class _StreamRun:
    agent: AgentClient
    options: HeadlessOptions
    out: OutputStream
    notices: OutputStream
    turn: HeadlessRun | None = None
    interrupted: asyncio.Event = field(default_factory=asyncio.Event)
    exit_code: int = ExitCode.CANCELLED

    def interrupt(self, number: int) -> None:
        """End the run with the exit code of a signal, after the turn under way was cancelled."""
        self.exit_code = 128 + number
        self.interrupted.set()
        if self.turn is not None:
            self.turn.interrupt(number)

    async def to_the_end(self, messages: AsyncGenerator[InputMessage, None]) -> int:
        """Run the messages, and return the exit code."""
        status: int | None = None
        while True:
            try:
                message = await self._next(messages)
            except InputLineError as error:
                return self._failed(RunError("FatalInputError", str(error), ExitCode.BAD_INPUT))
            if self.interrupted.is_set():
                return self._failed(RunError("FatalCancellationError", "Operation cancelled.", self.exit_code))
            if message is None and status is None:
                return self._failed(RunError("FatalInputError", NO_MESSAGE, ExitCode.BAD_INPUT))
            if message is None:
                return status or ExitCode.COMPLETED
            code = await self._run(message)
            status = status or code
            if self.out.is_broken or self.interrupted.is_set():
                return code

    async def _next(self, messages: AsyncGenerator[InputMessage, None]) -> InputMessage | None:
        """Return the next message; None at the end, and when the run is interrupted."""
        reading = asyncio.ensure_future(anext(messages, None))
        stop = asyncio.ensure_future(self.interrupted.wait())
        try:
            await asyncio.wait({reading, stop}, return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            for task in (reading, stop):
                task.cancel()
            await asyncio.gather(reading, stop, return_exceptions=True)

    async def _run(self, message: InputMessage) -> int:
        output = self._output()
        options = replace(self.options, prompt=message.text, files=message.files)
        self.turn = HeadlessRun(self.agent, options, output, self.out)
        try:
            error = await self.turn.to_the_end()
            if self.turn.context_id is not None:
                # The further turns go on with the session; the state of servers was that of the beginning.
                self.options = replace(self.options, context_id=self.turn.context_id, resume=None, servers=())
            if not self.out.is_broken:
                output.finished(self.turn.view, error)
        finally:
            self.turn = None
        if error is None and (loss := self.out.loss()) is not None:
            self.notices.write(loss)
            return ExitCode.ERROR
        return ExitCode.COMPLETED if error is None else error.code

    def _failed(self, error: RunError) -> int:
        if not self.out.is_broken:
            self._output().finished(TaskView(), error)
        return error.code

    def _output(self) -> StreamJsonOutput:
        return StreamJsonOutput(self.out, self.notices, self.options.model, self.options.servers)
