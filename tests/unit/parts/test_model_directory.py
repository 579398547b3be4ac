import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import date

import pytest

from isthmus.errors import IsthmusError
from isthmus.models.choose import ModelChoice
from isthmus.models.port.base import (
    Capabilities,
    ChatModel,
    Done,
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    StreamItem,
    Text,
    TextDelta,
    Usage,
)
from isthmus.parts.model_directory import OPEN_MODELS, ModelDirectory

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest("", (Message("user", (Text("hi"),)),))
KEYS = {"GEMINI_API_KEY": "key"}


@dataclass
class Counted:
    """A model that records whether it is closed."""

    name: str
    provider: str = "gemini"
    capabilities: Capabilities = field(default_factory=Capabilities)
    closed: int = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        yield TextDelta("a")
        assert not self.closed
        yield Done(Message("assistant", (Text("a"),)), Usage(), Finish.STOP)

    async def aclose(self) -> None:
        self.closed += 1


@dataclass
class Shop:
    opened: list[Counted] = field(default_factory=list[Counted])

    def open(self, choice: ModelChoice, environment: Mapping[str, str]) -> ChatModel:
        self.opened.append(Counted(choice.name))
        return self.opened[-1]


def directory(shop: Shop, environment: Mapping[str, str] = KEYS) -> ModelDirectory:
    return ModelDirectory(ModelChoice("gemini", "own", "test"), environment, shop.open)


async def test_each_model_is_opened_once() -> None:
    shop = Shop()
    models = directory(shop)
    names = (None, "own", "gemini:own", "gemini:other", "gemini:other", None)
    opened = await asyncio.gather(*(models.open(name) for name in names))
    assert [model.name for model in opened] == ["own", "own", "own", "other", "other", "own"]
    assert sorted(model.name for model in shop.opened) == ["other", "own"]
    await models.aclose()
    assert [model.closed for model in shop.opened] == [1, 1]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "gemini:NAME.*own is own"),
        ("claude-x", "ANTHROPIC_API_KEY"),
        ("scripted:/etc/passwd", "only when the agent starts"),
    ],
)
async def test_a_name_that_is_not_known_says_what_is(name: str, message: str) -> None:
    models = directory(Shop())
    with pytest.raises(ModelError, match=message) as refused:
        await models.open(name)
    assert refused.value.kind in (ModelErrorKind.UNKNOWN_MODEL, ModelErrorKind.CONFIGURATION)
    await models.aclose()


def test_a_name_is_looked_at_before_anything_is_opened() -> None:
    shop = Shop()
    models = directory(shop)
    for name in ("own", "gemini:own", "gemini:other", "demo", "ollama:llama"):
        models.check(name)
    for name, message in (
        ("nonsense", "gemini:NAME"),
        ("claude-x", "ANTHROPIC_API_KEY"),
        ("scripted:/x", "only when the agent starts"),
    ):
        with pytest.raises(IsthmusError, match=message):
            models.check(name)
    assert not shop.opened


async def test_few_stay_open_and_one_that_is_read_from_is_closed_afterwards() -> None:
    shop = Shop()
    models = directory(shop)
    first = await models.open("gemini:m0")
    reading = first.stream(REQUEST)
    await anext(reading)
    for number in range(1, OPEN_MODELS + 2):
        await models.open(f"gemini:m{number}")
    await asyncio.sleep(0)
    by_name = {model.name: model for model in shop.opened}
    assert not by_name["m0"].closed
    assert [type(item).__name__ async for item in reading] == ["Done"]
    assert by_name["m0"].closed == 1
    await models.aclose()
    assert all(model.closed for model in shop.opened)


def test_a_price_is_known_of_models_in_the_table_without_opening_them() -> None:
    shop, day = Shop(), date(2026, 7, 1)
    models = ModelDirectory(ModelChoice("gemini", "gemini-2.5-pro", "test"), KEYS, shop.open)
    price = models.price("gemini-2.5-pro", day)
    assert price is not None
    assert 0 < price.input < price.output
    assert models.price("gemini:gemini-2.5-flash", day) is not None
    assert models.price("gemini:no-such-model", day) is None
    assert models.price("no such model", day) is None
    assert models.price("scripted:/etc/passwd", day) is None
    assert not shop.opened
