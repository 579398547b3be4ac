"""One request to a model, with the retries of the policy: the code that all providers share.

A provider adds a subclass of :class:`ProviderModel`, which sends a body and receives JSON events, and one of
:class:`~isthmus.models.answer_reader.AnswerReader`, which reads the events. This module contains the retries, the waits
between them and the handling of failures, but no provider's JSON.
"""

import asyncio
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, suppress
from dataclasses import field, replace
from datetime import UTC, date, datetime
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isthmus.encoding.codec import JsonObject
from isthmus.media import Media
from isthmus.models.answer_reader import AnswerReader, StreamedAnswer
from isthmus.models.attachments import NO_ATTACHMENTS, Attachments, media_of, read_attachments
from isthmus.models.catalogue.facts import ModelFacts, ModelOverride, SaidLimits, end_of
from isthmus.models.catalogue.table import effective_facts, owner_of_endpoint
from isthmus.models.endpoint.context_lookup import Fetch, look_up_limits
from isthmus.models.endpoint.endpoint import ModelEndpoint, endpoint
from isthmus.models.endpoint.failure import HttpFailure, model_error
from isthmus.models.endpoint.http import Timeouts, connection_error, http_client, proxy_for
from isthmus.models.endpoint.model_names import fetch_json, list_request
from isthmus.models.endpoint.patience import RequestWaits, WaitClock
from isthmus.models.endpoint.providers import Provider
from isthmus.models.endpoint.retry import BRIEF, PASSING, RetryPolicy
from isthmus.models.endpoint.sleep_watch import SleepLimits, SleepWatch
from isthmus.models.fitting import fitted, fitted_media, with_cut_calls
from isthmus.models.known_media import KnownMedia, may_be_of_media
from isthmus.models.lazy import Lazy
from isthmus.models.port.base import (
    Capabilities,
    Done,
    Finish,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Opaque,
    Retrying,
    SearchAnswer,
    StreamItem,
    Text,
    ToolRequest,
    Usage,
)
from isthmus.models.port.costs import request_cost
from isthmus.models.tool_names import NameRule, WireNames
from isthmus.models.web_search import SearchReader
from isthmus.network.reachable import accepts_connections
from isthmus.record import record
from isthmus.text.units import show_count

if TYPE_CHECKING:
    import httpx2

Client = TypeVar("Client")

LOOKUP_SECONDS = 2.0
"""Deadline for learning the limits of a model from its server."""


@record
class StreamOptions:
    """Options of requests, with the clock and the random numbers, so that tests can replace them."""

    policy: RetryPolicy = field(default_factory=RetryPolicy)
    overrides: Mapping[str, ModelOverride] = field(default_factory=dict[str, ModelOverride])
    """Facts from the user's settings, by the names of models."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random.random
    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    is_reachable: Callable[[str], Awaitable[bool]] = accepts_connections
    sleep_limits: SleepLimits = field(default_factory=SleepLimits)


class ProviderModel(ABC, Generic[Client]):
    """A :class:`~isthmus.models.port.base.ChatModel` that uses the client of a provider's official SDK.

    The client is created at the first request. A subclass handles the SDK and the provider's JSON.
    """

    tool_names = NameRule()
    """Rule for names of tools that the provider accepts; bodies and readers contain only such names."""

    def __init__(
        self, name: str, endpoint: ModelEndpoint, environment: Mapping[str, str], options: StreamOptions
    ) -> None:
        self.name = name
        self._endpoint = endpoint
        self._environment = environment
        self._options = options
        self._media = KnownMedia()
        self._http: httpx2.AsyncClient | None = None
        self._client: Lazy[Client] = Lazy(self._connect)
        self._said: SaidLimits | None = None
        """Limits that the server has stated."""

    @property
    def provider(self) -> str:
        """The provider's id."""
        return self._endpoint.provider.id

    @cached_property
    def facts(self) -> ModelFacts | None:
        """Facts about the model: by the user's settings, its server or the table; None if nothing is known."""
        owner = owner_of_endpoint(self._endpoint.provider.id, self._endpoint.base_url)
        return effective_facts(owner, self.name, self._options.overrides, self._said)

    def _able(self, usual: Capabilities) -> Capabilities:
        """Return the abilities of the model by what is known of it; ``usual`` are those by its name."""
        facts = self.facts
        if facts is None:
            return usual if usual.thoughts else replace(usual, efforts=())
        return replace(
            usual,
            context_window=facts.room,
            efforts=facts.efforts if usual.thoughts else (),
            default_effort=facts.default_effort,
            output_limit=facts.output_limit,
            end=end_of(facts, self._today()),
            costs=facts.costs_on(self._today()),
        )

    def _today(self) -> date:
        return datetime.fromtimestamp(self._options.now(), UTC).date()

    def _priced(self, usage: Usage) -> Usage:
        """Return the usage of a request with what it costs now, which later prices do not change."""
        facts = self.facts
        return usage if facts is None else replace(usage, cost=request_cost(usage, facts.costs_on(self._today())))

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """The known abilities of the model."""

    @abstractmethod
    def _connect(self) -> Client:
        """Import the SDK and create its client with :meth:`_http_client` and without the SDK's retries."""

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        """Return a request that asks for no more than the model takes."""
        return fitted(request, self.facts)

    @abstractmethod
    def _body(self, request: ModelRequest, attachments: Attachments) -> JsonObject:
        """Return the body of the request; `attachments` contains its media."""

    @abstractmethod
    def _reader(self, request: ModelRequest) -> AnswerReader:
        """Return a reader for the answer to this request."""

    @abstractmethod
    def _open(self, body: JsonObject) -> AbstractAsyncContextManager[AsyncIterator[object]]:
        """Send the body and yield the events as raw JSON. The end of the block closes the response immediately."""

    @abstractmethod
    def _failure(self, error: Exception) -> HttpFailure | Exception | None:
        """Return the HTTP failure or the underlying error of an SDK's exception; None for another exception."""

    def _search(self, query: str) -> tuple[JsonObject, SearchReader] | None:
        """Return the body of a search of the web and the reader of its answer; None if the provider has none."""
        return None

    async def search(self, query: str) -> SearchAnswer:
        """Search the web, as specified by :meth:`SearchingModel.search`; it is tried once."""
        found = self._search(query)
        if found is None:
            message = f"{self._endpoint.title} does not search the web for {self.name}"
            raise ModelError(ModelErrorKind.BAD_REQUEST, message)
        body, reader = found
        try:
            async with self._open(body) as events:
                async for event in events:
                    reader.feed(event)
        except Exception as failure:
            error = self._translate(failure)
            if error is None:
                raise
            raise error from failure
        answer = reader.answer()
        if not answer.text:
            raise ModelError(ModelErrorKind.EMPTY, f"{self._endpoint.title} found nothing, or answered without a text")
        return replace(answer, usage=self._priced(answer.usage))

    def _http_client(self) -> "httpx2.AsyncClient":
        """Return the HTTP client for all connections of the SDK."""
        self._http = http_client(self._endpoint, self._environment, self._options.timeouts)
        return self._http

    async def prepare(self) -> None:
        """Ask the server for the limits of a model of which nothing is known; takes at most two seconds."""
        # Other names are those of fine-tuned models, for which providers state no limits.
        if self.facts is None and self._endpoint.provider.names.match(self.name):
            await self._ask_limits()

    async def _ask_limits(self) -> None:
        await self._client.get()
        if (http := self._http) is None:
            return
        where = self._endpoint
        headers = list_request(where)[1]
        fetch: Fetch = partial(fetch_json, http, headers=headers)
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOKUP_SECONDS):
                if (said := await look_up_limits(where, self.name, fetch)) is not None:
                    self._said = said
                    vars(self).pop("facts", None)  # they follow from it

    def load(self) -> None:
        """Import the SDK now instead of at the first request. Optional; blocks for 0.7-1.7 s of CPU time."""
        self._client.load()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of one answer, as specified by :meth:`ChatModel.stream`."""
        names = WireNames(request, self.tool_names)
        request = self._fitted(names.sent(request))
        attachments = await self._attachments(request)
        body = self._body(request, attachments)
        left_out: frozenset[Media] = frozenset()
        waits = self._waits()
        while True:
            begun = False
            try:
                reader = self._reader(request)
                with self._sleep_watch() as watch:
                    watch.wait()
                    async with self._open(body) as events:
                        async for event in events:
                            watch.received()
                            for item in self._items(reader.feed(event)):
                                begun = True
                                yield names.restore(item)
                            watch.wait()
                done = self._done(reader.answer(), request)
            except Exception as failure:
                error = self._translate(failure)
                if error is None:
                    raise
            else:
                self._media.note_accepted(attachments, left_out)
                yield names.restore(replace(done, refused=left_out))
                return
            if not begun and may_be_of_media(error) and (suspected := self._media.suspected(attachments)):
                # Otherwise one image that a provider cannot read would make all later requests of a session fail.
                left_out |= suspected
                attachments = await self._attachments(request, left_out)
                body = self._body(request, attachments)
                kinds = ", ".join(sorted({media.media_type for media in left_out}))
                reason = f"{error} The request is repeated without {show_count(len(left_out), 'file')} ({kinds})."
                yield Retrying(2, 2, 0.0, reason)
                continue
            if begun and error.kind in PASSING - {ModelErrorKind.EMPTY}:
                error = self._interruption(error)
            # Also after the answer has begun: it has had no effect yet, since calls are run after its end.
            async with aclosing(waits.after(error, self._policy(request, error))) as notices:
                async for notice in notices:
                    yield notice

    def _waits(self) -> RequestWaits:
        options = self._options
        where = proxy_for(self._endpoint, self._environment) or self._endpoint.base_url
        clock = WaitClock(options.sleep, options.random, options.now, options.monotonic)
        return RequestWaits(clock, lambda: options.is_reachable(where))

    def _sleep_watch(self) -> SleepWatch:
        return SleepWatch(self._options.now, self._options.monotonic, self._options.sleep_limits)

    def _policy(self, request: ModelRequest, error: ModelError) -> RetryPolicy:
        is_busy = error.kind in (ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED)
        return BRIEF if request.has_fallback and is_busy else self._options.policy

    async def _attachments(self, request: ModelRequest, left_out: frozenset[Media] = frozenset()) -> Attachments:
        if next(media_of(request.messages), None) is None:
            return NO_ATTACHMENTS
        refused = self._media.refused | request.refused | left_out
        rules = fitted_media(self._endpoint.provider.media, self.facts)
        return await asyncio.to_thread(read_attachments, request.messages, rules, refused)

    def _items(self, read: Sequence[StreamItem] | HttpFailure) -> Sequence[StreamItem]:
        if isinstance(read, HttpFailure):
            raise model_error(read, self._endpoint, self.name, self._options.now())
        return read

    def _done(self, answer: StreamedAnswer, request: ModelRequest) -> Done:
        title = self._endpoint.title
        if not answer.ended:
            raise ModelError(ModelErrorKind.INTERRUPTED, f"the answer of {title} ended too early")
        has_content = any(
            isinstance(part, (ToolRequest, Opaque)) or (isinstance(part, Text) and part.text.strip())
            for part in answer.message.parts
        )
        if answer.finish is Finish.SAFETY and not answer.message.parts:
            reason = f" ({answer.raw_finish})" if answer.raw_finish else ""
            raise ModelError(
                ModelErrorKind.SAFETY,
                f"{title} refused to answer for reasons of safety{reason}. Rephrase the request, or leave out the "
                "part that may be the reason",
            )
        if not has_content and answer.finish not in (Finish.LENGTH, Finish.SAFETY):
            reason = f" ({answer.raw_finish})" if answer.raw_finish else ""
            raise ModelError(ModelErrorKind.EMPTY, f"{self.name} gave an empty answer{reason}")
        limit = request.max_output_tokens or self.capabilities.output_limit or answer.usage.output
        message = with_cut_calls(answer.message, answer.finish, limit)
        return Done(message, self._priced(answer.usage), answer.finish, answer.raw_finish)

    def _translate(self, failure: Exception) -> ModelError | None:
        """Return the failure as a ModelError; None for a bug."""
        if isinstance(failure, ModelError):
            return failure
        cause = self._failure(failure)
        if isinstance(cause, ModelError):
            return cause
        if isinstance(failure, (json.JSONDecodeError, UnicodeDecodeError)):
            cause = HttpFailure(None, text=f"the received data is not JSON ({failure})")
        if isinstance(cause, HttpFailure):
            error = model_error(cause, self._endpoint, self.name, self._options.now())
        else:
            error = connection_error(cause or failure, self._endpoint, self._options.timeouts)
        # An SDK's message about a refused key may quote all or part of it.
        quotes_key = any(secret in str(failure) for secret in self._endpoint.secrets)
        if error is not None and error.kind is not ModelErrorKind.AUTHENTICATION and not quotes_key:
            error.__cause__ = failure
        return error

    def _interruption(self, error: ModelError) -> ModelError:
        text = str(error)
        if error.kind is not ModelErrorKind.INTERRUPTED:
            text = f"the answer of {self._endpoint.title} broke off: {text}"
        return ModelError(
            ModelErrorKind.INTERRUPTED, text, status=error.status, retry_after=error.retry_after, final=error.final
        )


def open_provider(
    provider: Provider,
    name: str,
    environment: Mapping[str, str],
    *,
    base_url: str | None = None,
    options: StreamOptions | None = None,
) -> ProviderModel[Any]:
    """Return the model ``name`` of a provider, or of the server at ``base_url`` that speaks its protocol.

    Raises:
        ModelError: CONFIGURATION - no key for an address that needs one, or an unusable address.
    """
    where = endpoint(provider, environment, base_url)
    model: type[ProviderModel[Any]] = import_module(provider.module_for(where.base_url)).MODEL
    return model(name, where, environment, options or StreamOptions())
