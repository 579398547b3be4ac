"""Requests of a server while its tools are called: each is matched to a call, and asked through that call.

A request belongs to the call whose answer's stream brought it, else to the only session that calls the server at the
time. A request without a call, or of an unknown session, is declined and noted. Without the SDK: the session passes
plain data.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from isthmus.forms.form import Content, Form, FormError
from isthmus.forms.requested_schema import form_of
from isthmus.mcp_host.elicitation.page_address import UrlError
from isthmus.mcp_host.elicitation.server_questions import (
    ACCEPT,
    DECLINE,
    SamplingWish,
    form_question,
    sampling_question,
    url_question,
    without_stop,
)
from isthmus.mcp_host.results.result import McpResult, parts_of, render
from isthmus.runtime.threads import in_thread
from isthmus.tools.user_question import (
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
"""Questions that one call may ask."""
MAXIMUM_SAMPLES = 25
"""Requests to the model of one server in one task, in all its calls: each costs the user tokens."""
MAXIMUM_TASKS = 100
"""Tasks whose requests are counted; of more, the last ones."""
ATTEMPTS = 3
"""Maximum number of times that a form is shown until its values fit."""
MAXIMUM_CHARACTERS = 200_000
"""Maximum number of characters of all texts of one request."""
MAXIMUM_TOKENS = 100_000
"""Output tokens that a server may ask for; of more, so many."""
DONE = "The server says that it is done"
NOTES = 10
BROWSER_SECONDS = 10.0
"""After them, one that runs until it is closed is no longer waited for."""

_CURRENT: "ContextVar[CallAsks | None]" = ContextVar("isthmus_mcp_call", default=None)


class DeclinedError(Exception):
    """A request that nobody is asked about, and why."""


@dataclass(frozen=True, slots=True)
class Elicited:
    """The answer to an elicitation: ``action`` is accept, decline or cancel."""

    action: str
    content: Content | None = None


class CallAsks:
    """Asks the user what the server asks in one running call, through that call's ``ask``.

    ``task`` is the folder for outputs of the task that the call is of, which stands for that task.
    """

    def __init__(self, task: str, ask: AskUser) -> None:
        self.task = task
        self._ask = ask
        self._count = 0
        self._end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def start(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run the call; what its transport's streams bring is known to be its own."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        calling = asyncio.create_task(work, context=context)
        calling.add_done_callback(lambda _: self.end("The call ended before it was answered"))
        return calling

    async def ask(self, question: UserQuestion) -> Reply:
        """Put a question, and wait for its reply.

        Raises:
            DeclinedError: the call has asked too much.
        """
        self._count += 1
        if self._count > MAXIMUM_QUESTIONS:
            raise DeclinedError(f"the call has asked {MAXIMUM_QUESTIONS} times, which is as much as one may")
        return NoAnswer(self._end.result()) if self._end.done() else await self._ask(question, self._end)

    def end(self, reason: str) -> None:
        """Withdraw its questions: the call is over."""
        if not self._end.done():
            self._end.set_result(reason)


class ServerAsking:
    """The requests of one server. ``notes`` say what was declined without asking. ``open_browser``: see HostOptions."""

    def __init__(self, server: str, workspace: Path, open_browser: Callable[[str], object] | None = None) -> None:
        self.notes: deque[str] = deque(maxlen=NOTES)
        self.open_browser = open_browser
        self._server = server
        self._workspace = workspace
        self._calls: list[CallAsks] = []
        self._waiting: list[tuple[asyncio.Future[str], set[str]]] = []
        self._completed: deque[str] = deque(maxlen=100)
        self._samples: dict[str, int] = {}
        self.sampled = 0
        """Requests to the model that were made for the server."""

    @property
    def is_busy(self) -> bool:
        """Whether a call runs, in which the server may ask."""
        return bool(self._calls)

    @contextlib.contextmanager
    def call(self, asks: CallAsks) -> Generator[None]:
        """While a call runs."""
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
        """Ask a user to go to a page."""
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

    async def sample(self, wish: SamplingWish) -> ModelAnswer:
        """Ask the session's model.

        Raises:
            DeclinedError: it was not asked, or did not answer; the text says why.
        """
        size = len(wish.system) + sum(len(str(message.blocks)) for message in wish.messages if not message.others)
        try:
            asks = self._asks(size)
            self._count_sample(asks.task)
        except DeclinedError as error:
            self._note("sampling", str(error))
            raise
        tokens = max(1, min(wish.maximum_tokens, MAXIMUM_TOKENS))
        messages = await asyncio.to_thread(_messages, wish, Path(asks.task))
        prompt = ModelPrompt(wish.system, messages, tokens)
        match await asks.ask(replace(sampling_question(self._server, wish), prompt=prompt)):
            case ModelAnswer(text, model, is_cut):
                self.sampled += 1
                text, is_stopped = without_stop(text, wish.stop_sequences)
                return ModelAnswer(text, model, is_cut and not is_stopped)
            case NoAnswer(reason):
                raise DeclinedError(reason)
            case Chosen():
                raise DeclinedError("the user rejected the sampling request")

    def _count_sample(self, task: str) -> None:
        """Count a request to the model.

        Raises:
            DeclinedError: the task has had as many as one may.
        """
        count = self._samples.pop(task, 0)
        self._samples[task] = count + 1
        if len(self._samples) > MAXIMUM_TASKS:
            del self._samples[next(iter(self._samples))]
        if count >= MAXIMUM_SAMPLES:
            raise DeclinedError(f"the task has had {MAXIMUM_SAMPLES} requests to the model of this server, the maximum")

    def completed(self, elicitation_id: str) -> None:
        """Take note that the user has done what the server wanted done elsewhere."""
        self._completed.append(elicitation_id)
        for done, missing in self._waiting:
            missing.discard(elicitation_id)
            if not missing and not done.done():
                done.set_result(DONE)

    # --- for the call ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def completion(self, elicitation_ids: Sequence[str]) -> "Generator[asyncio.Future[str]]":
        """Give a future that has a result when the server says that all of these are done."""
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
        """Open a page that a user has consented to, where that user is at this machine."""
        if self.open_browser is None:
            return
        try:
            await in_thread(partial(self.open_browser, url), BROWSER_SECONDS)
        except TimeoutError:
            return  # one that runs until it is closed
        except Exception as error:
            self._note("an elicitation", f"the browser could not be opened: {error}")

    async def _fill_in(self, asks: CallAsks, message: str, form: Form) -> Elicited:
        problem = last = ""
        for _ in range(ATTEMPTS):
            question = form_question(self._server, message, form, self._workspace, problem, last)
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
        # Without the problem, which quotes what a user filled in: others see the notes, and the log has them.
        self._note("an elicitation", f"what was filled in did not fit {ATTEMPTS} times")
        return Elicited("cancel")

    def _asks(self, size: int) -> CallAsks:
        if size > MAXIMUM_CHARACTERS:
            raise DeclinedError(f"it has {size:,} characters; at most {MAXIMUM_CHARACTERS:,} are taken")
        current = _CURRENT.get()
        if current is not None and current in self._calls:
            return current
        if not self._calls:
            raise DeclinedError("no call of its tools was running, so nobody was asked")
        if len({asks.task for asks in self._calls}) > 1:
            raise DeclinedError("several sessions were calling its tools, and it does not say which one it asks")
        return self._calls[-1]

    def _decline(self, what: str, why: str) -> Elicited:
        self._note(what, why)
        return Elicited(DECLINE)

    def _note(self, what: str, why: str) -> None:
        self.notes.append(f"declined {what}: {why}")
        _LOG.info("MCP server %s: declined %s: %s", self._server, what, why)


def _messages(wish: SamplingWish, folder: Path) -> tuple[SamplingMessage, ...]:
    """Return the prompt, with its media kept in files. Blocks."""
    messages: list[SamplingMessage] = []
    for number, message in enumerate(wish.messages, 1):
        if not message.others:
            messages.append(SamplingMessage(message.role, message.text))
            continue
        found = render(McpResult(parts_of(message.blocks)), folder, f"sampling-{number}")
        # Media is taken in a user's messages alone; of the model's own, the text says what it was.
        messages.append(SamplingMessage(message.role, found.for_model, found.media if message.role == "user" else ()))
    return tuple(messages)


def action_of(reply: Reply, question: UserQuestion) -> str:
    """Return MCP's word for an answer: accept, decline or cancel."""
    match reply:
        case Chosen(option_id):
            if option_id in question.accepting:
                return ACCEPT
            return option_id if option_id == DECLINE else "cancel"
        case NoAnswer(is_refusal=True):
            return DECLINE
        case NoAnswer() | ModelAnswer():
            return "cancel"
