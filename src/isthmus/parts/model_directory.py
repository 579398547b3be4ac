"""The models of an agent in this process: its own, opened in the background, and others by name.

A session may name another model (AgentSettings, the command /model). Only a few stay open; a model that is no longer
needed is closed as soon as no request reads from it.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from typing_extensions import override

from isthmus.errors import IsthmusError
from isthmus.models.catalogue.facts import ModelOverride
from isthmus.models.choose import (
    ModelChoice,
    check_name,
    choose_by_name,
    facts_of_choice,
    open_model,
    provider_of,
)
from isthmus.models.endpoint.media_rules import MediaRules
from isthmus.models.endpoint.providers import ANY_MEDIA, provider_with_id
from isthmus.models.port.base import (
    DEFAULT_EFFORT,
    Capabilities,
    ChatModel,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    PreparedModel,
    SearchAnswer,
    SearchingModel,
    StreamItem,
)
from isthmus.models.port.costs import Price
from isthmus.runtime.running_tasks import RunningTasks

if TYPE_CHECKING:
    from collections.abc import Callable

LIST_SECONDS = 300.0
"""Time in seconds during which the providers' lists of models are not asked for again."""
OPEN_MODELS = 8
"""Maximum number of models that stay open besides the agent's own."""


@dataclass(slots=True)
class SharedModel(ChatModel):
    """A ChatModel that closes once it is retired and no request reads from it."""

    model: ChatModel
    _readers: int = 0
    _is_retired: bool = False

    @property
    @override
    def name(self) -> str:
        return self.model.name

    @property
    @override
    def provider(self) -> str:
        return self.model.provider

    @property
    @override
    def capabilities(self) -> Capabilities:
        return self.model.capabilities

    @override
    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        self._readers += 1
        try:
            async with contextlib.aclosing(self.model.stream(request)) as items:
                async for item in items:
                    yield item
        finally:
            self._readers -= 1
            if self._is_retired and not self._readers:
                await self.model.aclose()

    async def search(self, query: str) -> SearchAnswer:
        """Search the web with the model.

        Raises:
            ModelError: there is no usable answer.
        """
        if not isinstance(self.model, SearchingModel):
            raise ModelError(ModelErrorKind.BAD_REQUEST, f"{self.name} does not search the web")
        self._readers += 1
        try:
            return await self.model.search(query)
        finally:
            self._readers -= 1
            if self._is_retired and not self._readers:
                await self.model.aclose()

    async def retire(self) -> None:
        """Close the model, now or after the last reader; a later request of a remaining user opens it again."""
        self._is_retired = True
        if not self._readers:
            await self.model.aclose()

    @override
    async def aclose(self) -> None:
        await self.model.aclose()


@dataclass(slots=True)
class ModelDirectory:
    """Directory that opens each model once. ``own`` is the agent's model; its SDK imports slowly: ``begin`` early."""

    own: ModelChoice
    environment: Mapping[str, str]
    open_choice: "Callable[[ModelChoice, Mapping[str, str]], ChatModel]" = open_model
    overrides: Mapping[str, ModelOverride] = field(default_factory=dict[str, ModelOverride])
    """Facts about models from the user's settings."""
    _own: "asyncio.Task[ChatModel] | None" = None
    _others: "dict[str, asyncio.Task[SharedModel]]" = field(default_factory=dict[str, "asyncio.Task[SharedModel]"])
    _names: tuple[float, Sequence[str]] | None = None
    _retiring: RunningTasks = field(default_factory=RunningTasks)

    def begin(self) -> "asyncio.Task[ChatModel]":
        """Start to open the agent's own model in the background unless it is open or opening; retry after a failure."""
        opening = self._own
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = asyncio.create_task(self._prepared(self.own))
            self._own = opening
        return opening

    async def open(self, name: str | None = None) -> ChatModel:
        """Return the model with a name as for ``--model``; the agent's own model for None.

        Raises:
            ModelError: the model is unknown or cannot be opened; the next call tries again.
        """
        if name is None or self._is_own(name):
            return await asyncio.shield(self.begin())
        opening = self._others.pop(name, None)
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception() is not None)):
            opening = asyncio.create_task(self._open(name))
        self._others[name] = opening
        while len(self._others) > OPEN_MODELS:
            self._retire(self._others.pop(next(iter(self._others))))
        return await asyncio.shield(opening)

    async def names(self) -> Sequence[str]:
        """Return the names of the models to choose from; asks the providers, at most once in five minutes."""
        now = time.monotonic()
        if self._names is None or now - self._names[0] > LIST_SECONDS:
            from isthmus.models.endpoint.model_names import list_model_names

            self._names = (now, await list_model_names(self.environment))
        return tuple(dict.fromkeys((self.own.name, *self._names[1])))

    def price(self, name: str, day: date) -> Price | None:
        """Return the price of small requests to the model with a name as for ``--model`` on a day; None: not known."""
        try:
            choice = self.own if self._is_own(name) else choose_by_name(name, self.environment, "")
        except IsthmusError:
            return None
        facts = facts_of_choice(choice, self.environment, self.overrides)
        costs = None if facts is None else facts.costs_on(day)
        return None if costs is None else costs.price_for(0)

    def check(self, name: str, effort: str | None = None) -> None:
        """Check a model's name without opening the model, and an effort that it shall have.

        Raises:
            IsthmusError: :func:`check_name` refuses the name, it names a script, which a session may not choose, or the
                model is known not to have the effort.
        """
        choice = self.own
        if not self._is_own(name):
            self._check_script(name)
            check_name(name, self.environment)
            if name.strip().lower().startswith(("scripted:", "demo")):
                return
            choice = choose_by_name(name, self.environment, "")
        if not effort or effort == DEFAULT_EFFORT:
            return
        facts = facts_of_choice(choice, self.environment, self.overrides)
        if facts is not None and effort not in facts.efforts:
            known = ", ".join((*facts.efforts, DEFAULT_EFFORT))
            raise IsthmusError(f"{choice.name} has no effort {effort[:100]}; expected one of {known}")

    def media_rules(self, name: str | None) -> MediaRules:
        """Return the rules for non-text content of the model with this name; None is the agent's own model."""
        provider = provider_with_id(self.own.provider) if name is None or self._is_own(name) else provider_of(name)
        return provider.media if provider is not None else ANY_MEDIA

    async def aclose(self) -> None:
        """Close every connection."""
        for task in (self._own, *self._others.values()):
            if task is not None:
                with contextlib.suppress(Exception):
                    await (await task).aclose()
        await self._retiring.wait()

    def _is_own(self, name: str) -> bool:
        return name in (self.own.name, f"{self.own.provider}:{self.own.name}")

    def _check_script(self, name: str) -> None:
        # A script is a file on this machine, which a client could read by naming it.
        if name.strip().lower().startswith("scripted:") and self.own.provider != "scripted":
            raise ModelError(ModelErrorKind.UNKNOWN_MODEL, "a scripted model can be chosen only when the agent starts")

    async def _open(self, name: str) -> SharedModel:
        self._check_script(name)
        try:
            choice = await asyncio.to_thread(choose_by_name, name, self.environment, "this session names it")
            return SharedModel(await self._prepared(choice))
        except ModelError:
            raise
        except IsthmusError as error:
            raise ModelError(ModelErrorKind.UNKNOWN_MODEL, f"{error}; this agent's own is {self.own.name}") from error

    async def _prepared(self, choice: ModelChoice) -> ChatModel:
        model = await asyncio.to_thread(self.open_choice, choice, self.environment)
        if isinstance(model, PreparedModel):
            await model.prepare()
        return model

    def _retire(self, opening: "asyncio.Task[SharedModel]") -> None:
        async def retire() -> None:
            with contextlib.suppress(IsthmusError):
                await (await opening).retire()

        self._retiring.start(retire())
