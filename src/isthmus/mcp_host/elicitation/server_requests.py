"""Requests of a server during calls of its tools: each is assigned to a call, and its user is asked.

A request belongs to the call on the same response stream; otherwise to the only session that is calling the server. If
no session or several sessions are calling it, the request is declined and noted. Does not import the SDK: the session
passes plain data.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from isthmus.forms.form import Content, Form, FormError
from isthmus.forms.requested_schema import form_of
from isthmus.mcp_host.elicitation.page_address import UrlError
from isthmus.mcp_host.elicitation.server_questions import (
    ACCEPT,
    DECLINE,
    SamplingPrompt,
    form_question,
    sampling_question,
    url_question,
    without_stop,
)
from isthmus.mcp_host.results.result import McpResult, parts_of, render
from isthmus.record import record
from isthmus.runtime.threads import in_thread
from isthmus.tools.port.user_question import (
    AskUser,
    Chosen,
    ModelAnswer,
    ModelPrompt,
    NoAnswer,
    Reply,
    SamplingMessage,
    UserQuestion,
)

_LOG = logging.getLogger("isthmus.mcp")

T = TypeVar("T")

MAXIMUM_QUESTIONS = 20
"""Maximum number of questions in one call."""
MAXIMUM_SAMPLES = 25
"""Maximum number of a server's requests to the model in all calls of one task: each costs the user tokens."""
MAXIMUM_TASKS = 100
"""Maximum number of tasks with a count of requests; the oldest counts are dropped."""
ATTEMPTS = 3
"""Maximum number of times that a form is shown until its values fit."""
MAXIMUM_CHARACTERS = 200_000
"""Maximum number of characters of all texts of one request."""
MAXIMUM_TOKENS = 100_000
"""Maximum number of output tokens of a request to the model; a larger number is reduced to it."""
DONE = "The server reports that it is done"
NOTES = 10
BROWSER_SECONDS = 10.0
"""Maximum wait in seconds for the browser's program, which may run until the user closes it."""

_CURRENT: "ContextVar[CallAsks | None]" = ContextVar("isthmus_mcp_call", default=None)


class DeclinedError(Exception):
    """A request was declined without asking the user; the message is the reason."""


@record
class Elicited:
    """The answer to an elicitation: ``action`` is accept, decline or cancel."""

    action: str
    content: Content | None = None


class CallAsks:
    """The server's questions in one running call, which are asked through that call's ``ask``.

    ``task`` identifies the call's task: it is the task's output folder.
    """

    def __init__(self, task: str, ask: AskUser) -> None:
        self.task = task
        self._ask = ask
        self._count = 0
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run the call; requests on its transport's streams are assigned to it."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        calling = asyncio.create_task(work, context=context)
        calling.add_done_callback(lambda _: self.end("The call ended before it was answered"))
        return calling

    async def ask(self, question: UserQuestion) -> Reply:
        """Ask a question, and wait for the reply.

        Raises:
            DeclinedError: the call has asked too many questions.
        """
        self._count += 1
        if self._count > MAXIMUM_QUESTIONS:
            raise DeclinedError(f"the call has asked {MAXIMUM_QUESTIONS} questions, the maximum")
        return NoAnswer(self._end.result()) if self._end.done() else await self._ask(question, self._end)

    def end(self, reason: str) -> None:
        """Withdraw the questions of the call, which is over."""
        if not self._end.done():
            self._end.set_result(reason)


class ServerAsking:
    """The requests of one server.

    ``notes`` describe declined requests; ``open_browser`` is as in HostOptions. ``host`` is the server's host; empty if
    it is a program.
    """

    def __init__(
        self, server: str, workspace: Path, open_browser: Callable[[str], object] | None = None, host: str = ""
    ) -> None:
        self.notes: deque[str] = deque(maxlen=NOTES)
        self.open_browser = open_browser
        self._server = server
        self._host = host
        self._workspace = workspace
        self._calls: list[CallAsks] = []
        self._waiting: list[tuple[asyncio.Future[str], set[str]]] = []
        self._completed: deque[str] = deque(maxlen=100)
        self._samples: dict[str, int] = {}
        self.sampled = 0
        """Number of requests to the model that were made for the server."""

    @property
    def is_busy(self) -> bool:
        """Whether a call is running, in which the server may ask."""
        return bool(self._calls)

    @contextlib.contextmanager
    def call(self, asks: CallAsks) -> Generator[None]:
        """Accept questions for a call while the block runs."""
        self._calls.append(asks)
        try:
            yield
        finally:
            self._calls.remove(asks)
            asks.end("The call was ended")

    # --- requests of the server --------------------------------------------------------------------------------------

    async def elicit_form(self, message: str, schema: Mapping[str, Any]) -> Elicited:
        """Ask a user to fill in a form."""
        try:
            asks = self._asks(len(message))
            form = form_of(schema)
            return await self._fill_in(asks, message, form)
        except (DeclinedError, FormError) as error:
            return self._decline("an elicitation", str(error))

    async def elicit_url(self, message: str, url: str) -> Elicited:
        """Ask a user to open a page."""
        try:
            asks = self._asks(len(message))
            question = url_question(self._server, message, url, opens_browser=self.open_browser is not None)
            reply = await asks.ask(question)
        except (DeclinedError, UrlError) as error:
            return self._decline("an elicitation", str(error))
        action = action_of(reply, question)
        if action == ACCEPT:
            await self.show(url)
        return Elicited(action)

    async def sample(self, prompt: SamplingPrompt) -> ModelAnswer:
        """Ask the session's model.

        Raises:
            DeclinedError: the model was not asked, or did not answer; the message is the reason.
        """
        size = len(prompt.system) + sum(len(str(message.blocks)) for message in prompt.messages if not message.others)
        try:
            asks = self._asks(size)
            self._count_sample(asks.task)
        except DeclinedError as error:
            self._note("sampling", str(error))
            raise
        tokens = max(1, min(prompt.maximum_tokens, MAXIMUM_TOKENS))
        messages = await asyncio.to_thread(_messages, prompt, Path(asks.task))
        model_prompt = ModelPrompt(prompt.system, messages, tokens)
        match await asks.ask(replace(sampling_question(self._server, prompt), prompt=model_prompt)):
            case ModelAnswer(text, model, is_cut):
                self.sampled += 1
                text, is_stopped = without_stop(text, prompt.stop_sequences)
                return ModelAnswer(text, model, is_cut and not is_stopped)
            case NoAnswer(reason):
                raise DeclinedError(reason)
            case Chosen():
                raise DeclinedError("the user rejected the sampling request")

    def _count_sample(self, task: str) -> None:
        """Count a request to the model.

        Raises:
            DeclinedError: the task has reached the maximum.
        """
        count = self._samples.pop(task, 0)
        self._samples[task] = count + 1
        if len(self._samples) > MAXIMUM_TASKS:
            del self._samples[next(iter(self._samples))]
        if count >= MAXIMUM_SAMPLES:
            raise DeclinedError(f"the task has had {MAXIMUM_SAMPLES} requests to the model of this server, the maximum")

    def completed(self, elicitation_id: str) -> None:
        """Note the server's report that the user has completed an elicitation by URL."""
        self._completed.append(elicitation_id)
        for done, missing in self._waiting:
            missing.discard(elicitation_id)
            if not missing and not done.done():
                done.set_result(DONE)

    # --- for the call ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def completion(self, elicitation_ids: Sequence[str]) -> "Generator[asyncio.Future[str]]":
        """Yield a future that gets a result when the server has reported all of these elicitations as completed."""
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        missing = set(elicitation_ids).difference(self._completed)
        if not missing:
            done.set_result(DONE)
        self._waiting.append((done, missing))
        try:
            yield done
        finally:
            self._waiting.remove((done, missing))

    async def show(self, url: str) -> None:
        """Open a page that the user has agreed to, if the user is at this machine."""
        if self.open_browser is None:
            return
        try:
            await in_thread(partial(self.open_browser, url), BROWSER_SECONDS)
        except TimeoutError:
            return  # the browser's program runs until it is closed
        except Exception as error:
            self._note("an elicitation", f"the browser could not be opened: {error}")

    async def _fill_in(self, asks: CallAsks, message: str, form: Form) -> Elicited:
        problem = last = ""
        for _ in range(ATTEMPTS):
            question = form_question(self._server, message, form, self._workspace, problem, last, self._host)
            reply = await asks.ask(question)
            action = action_of(reply, question)
            if action != ACCEPT or not isinstance(reply, Chosen):
                return Elicited(action)
            if not form.fields:
                return Elicited(ACCEPT, {})
            if form.is_direct:
                return Elicited(ACCEPT, form.chosen(reply.option_id))
            try:
                return Elicited(ACCEPT, form.read(reply.content or form.document(self._server, message)))
            except FormError as error:
                problem, last = str(error), reply.content or ""
        # Without the problem, which quotes the user's input: other users see the notes, and they are logged.
        self._note("an elicitation", f"the form was filled in wrongly {ATTEMPTS} times")
        return Elicited("cancel")

    def _asks(self, size: int) -> CallAsks:
        if size > MAXIMUM_CHARACTERS:
            raise DeclinedError(f"it has {size:,} characters; at most {MAXIMUM_CHARACTERS:,} are accepted")
        current = _CURRENT.get()
        if current is not None and current in self._calls:
            return current
        if not self._calls:
            raise DeclinedError("no call of its tools was running, so no user was asked")
        if len({asks.task for asks in self._calls}) > 1:
            raise DeclinedError("several sessions were calling its tools, and the request does not name one of them")
        return self._calls[-1]

    def _decline(self, kind: str, reason: str) -> Elicited:
        self._note(kind, reason)
        return Elicited(DECLINE)

    def _note(self, kind: str, reason: str) -> None:
        self.notes.append(f"declined {kind}: {reason}")
        _LOG.info("MCP server %s: declined %s: %s", self._server, kind, reason)


def _messages(prompt: SamplingPrompt, folder: Path) -> tuple[SamplingMessage, ...]:
    """Return the messages of the prompt, with their media stored in files. Blocking."""
    messages: list[SamplingMessage] = []
    for number, message in enumerate(prompt.messages, 1):
        if not message.others:
            messages.append(SamplingMessage(message.role, message.text))
            continue
        found = render(McpResult(parts_of(message.blocks)), folder, f"sampling-{number}")
        # Only a user's messages can contain media; in the model's messages, the text describes them.
        messages.append(SamplingMessage(message.role, found.for_model, found.media if message.role == "user" else ()))
    return tuple(messages)


def action_of(reply: Reply, question: UserQuestion) -> str:
    """Return MCP's action for a reply: accept, decline or cancel."""
    match reply:
        case Chosen(option_id):
            if option_id in question.accepting:
                return ACCEPT
            return option_id if option_id == DECLINE else "cancel"
        case NoAnswer(is_refusal=True):
            return DECLINE
        case NoAnswer() | ModelAnswer():
            return "cancel"
