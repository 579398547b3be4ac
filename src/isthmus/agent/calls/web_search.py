"""Search of the web by the model of a session, for tools."""

import asyncio
import contextlib
from collections.abc import Sequence

from isthmus.agent.resources import ModelSource
from isthmus.models.port.base import ModelError, ModelErrorKind, SearchingModel
from isthmus.tools.port.base import ModelTokens, WebAnswer
from isthmus.tools.port.failure import ToolFailure

SECONDS = 90.0
"""Maximum time for a search: a provider reads pages before it answers."""
_FAILURE = "web_search_error"


async def search_web(open_model: ModelSource, names: Sequence[str | None], query: str) -> WebAnswer:
    """Return the answer of the first of these models that is not overloaded.

    Raises:
        ToolFailure: its provider does not search, does not answer, or refuses.
    """
    *others, last = names
    for name in others:
        with contextlib.suppress(_BusyError):
            return await _search(open_model, name, query)
    return await _search(open_model, last, query)


class _BusyError(ToolFailure):
    """The provider is overloaded; another model may not be."""


async def _search(open_model: ModelSource, name: str | None, query: str) -> WebAnswer:
    try:
        model = await open_model(name)
        if not isinstance(model, SearchingModel) or not model.capabilities.web_search:
            raise ToolFailure(f"{model.name} does not search the web", _FAILURE)
        async with asyncio.timeout(SECONDS):
            found = await model.search(query)
    except ModelError as error:
        is_busy = error.kind in (ModelErrorKind.RATE_LIMIT, ModelErrorKind.OVERLOADED)
        raise (_BusyError if is_busy else ToolFailure)(f"the search failed: {error}", _FAILURE) from error
    except TimeoutError as error:
        raise ToolFailure(f"the search took more than {SECONDS:g} s and was stopped", _FAILURE) from error
    usage = found.usage
    tokens = ModelTokens(model.name, 1, usage.input, usage.output, usage.cached, usage.thoughts, usage.cost)
    return WebAnswer(found.text, tuple((source.title, source.url) for source in found.sources), tokens)
