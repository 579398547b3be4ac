"""The requests of the page for what models have used today, and for their prices."""

from collections.abc import Sequence
from typing import Any

import pytest

from isthmus.a2a.server.users.auth import Refusal
from isthmus.errors import IsthmusError, Unavailable
from isthmus.web.http.refusals import RefusalCode, refusal
from isthmus.web.model_figures import MAXIMUM_MODELS, model_prices, use_today
from isthmus.web.view import NotShownError

pytestmark = pytest.mark.anyio


class Figures:
    """The part of a view that is asked here; ``error`` is raised by it."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: Sequence[str] = ()

    async def use(self, user: str) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        return {"tokens": 7, "user": user}

    async def prices(self, user: str, models: Sequence[str]) -> dict[str, Any]:
        if user:
            raise NotShownError("only the owner")
        self.asked = models
        return dict.fromkeys(models)


def view(error: Exception | None = None) -> Any:
    return Figures(error)


async def test_the_use_of_today_is_that_of_the_user() -> None:
    assert await use_today(view(), "ann") == {"tokens": 7, "user": "ann"}
    assert await use_today(None, "ann") == {}


async def test_a_journal_that_is_away_is_told_as_such() -> None:
    with pytest.raises(Unavailable):
        await use_today(view(Unavailable("away")), "")
    assert await use_today(view(IsthmusError("broken")), "") == refusal(RefusalCode.UNAVAILABLE, "broken")


@pytest.mark.parametrize("models", [None, "gpt-5", ["x"] * (MAXIMUM_MODELS + 1)])
async def test_a_list_of_models_that_is_none_is_refused(models: object) -> None:
    answer = await model_prices(view(), "", {"models": models})
    assert isinstance(answer, Refusal)
    assert answer.status == 400


async def test_only_names_are_looked_up() -> None:
    figures = view()
    answer = await model_prices(figures, "", {"models": ["gpt-5", 3, None, "x" * 300]})
    assert (answer, figures.asked) == ({"prices": {"gpt-5": None}}, ["gpt-5"])
    assert await model_prices(None, "", {"models": ["gpt-5"]}) == {"prices": {}}


async def test_a_user_of_the_server_does_not_see_its_prices() -> None:
    answer = await model_prices(view(), "ann", {"models": ["gpt-5"]})
    assert isinstance(answer, Refusal)
    assert answer.status == 403
