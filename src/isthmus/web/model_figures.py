"""The requests ``/ui/api/use`` and ``/ui/api/prices``: what models have used today, and what they cost."""

from typing import Any, cast

from isthmus.a2a.server.users.auth import Refusal
from isthmus.errors import IsthmusError, Unavailable
from isthmus.web.http.refusals import RefusalCode, refusal
from isthmus.web.view import NotShownError, WorkbenchView

MAXIMUM_MODELS = 100
"""Maximum number of models whose prices are asked for at once."""
MAXIMUM_NAME = 200
"""Maximum length of a model's name in characters."""
_EXPECTED = f"expected models, a list of at most {MAXIMUM_MODELS} names"


async def use_today(view: WorkbenchView | None, user: str) -> dict[str, Any] | Refusal:
    """Return what models have used today for a user; empty if that is not counted. Raises Unavailable."""
    try:
        return {} if view is None else await view.use(user)
    except Unavailable:
        raise
    except IsthmusError as error:
        return refusal(RefusalCode.UNAVAILABLE, str(error))


async def model_prices(view: WorkbenchView | None, user: str, given: dict[str, Any]) -> dict[str, Any] | Refusal:
    """Return the prices of the models that a request names."""
    models: object = given.get("models")
    if not isinstance(models, list) or len(cast("list[object]", models)) > MAXIMUM_MODELS:
        return refusal(RefusalCode.BAD_REQUEST, _EXPECTED)
    names = [name for name in cast("list[object]", models) if isinstance(name, str) and len(name) <= MAXIMUM_NAME]
    try:
        return {"prices": {} if view is None else await view.prices(user, names)}
    except NotShownError as error:
        return refusal(RefusalCode.NOT_SHOWN, str(error))
