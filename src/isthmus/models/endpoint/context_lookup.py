"""Limits of a model that its server states: Anthropic, Gemini, and servers that imitate OpenAI.

The servers that imitate OpenAI (vLLM, OpenRouter, llama.cpp, Ollama and others) have no common way to tell the window,
so that their own ones are tried in turn. An answer in an unexpected form counts as none. Not here: the table of known
models, see :mod:`isthmus.models.catalogue.table`.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.models.catalogue.facts import SaidLimits
from isthmus.models.endpoint.endpoint import ModelEndpoint

Fetch: TypeAlias = Callable[[str, Mapping[str, Any] | None], Awaitable[object]]
"""Returns the JSON at a URL, after a POST with the given JSON if there is one; None if there is none."""

SMALLEST_WINDOW, LARGEST_WINDOW = 512, 100_000_000
LISTED_FIELDS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names of the window in lists of models, as of vLLM, OpenRouter, Groq and Mistral."""


async def look_up_limits(where: ModelEndpoint, model: str, fetch: Fetch) -> SaidLimits | None:
    """Return the limits of a model in tokens, or None if its server does not tell them."""
    match where.provider.id:
        case "anthropic":
            found = as_object(await fetch(f"{where.base_url}/v1/models/{quote(model)}", None))
            return _said(found.get("max_input_tokens"), found.get("max_tokens"))
        case "gemini":
            path = model if "/" in model else f"models/{model}"
            found = as_object(await fetch(f"{where.base_url}/v1beta/{quote(path)}", None))
            return _said(found.get("inputTokenLimit"), found.get("outputTokenLimit"))
        case _:
            window = await look_up_window(where.base_url, model, fetch, is_local=where.is_loopback)
            return None if window is None else SaidLimits(window)


def _said(window: object, output: object) -> SaidLimits | None:
    size = _window(window)
    return None if size is None else SaidLimits(size, _window(output))


async def look_up_window(base_url: str, model: str, fetch: Fetch, *, is_local: bool) -> int | None:
    """Return the context window of a model in tokens, or None if its server does not tell it.

    ``base_url`` ends in ``/v1``. ``is_local``: the server is on this machine, and may be llama.cpp or Ollama.
    """
    if (listed := _listed(await fetch(f"{base_url}/models", None), model)) is not None:
        return listed
    root = base_url.removesuffix("/v1")
    if not is_local or root == base_url:
        return None
    settings = as_object(as_object(await fetch(f"{root}/props", None)).get("default_generation_settings"))
    if (window := _window(settings.get("n_ctx"))) is not None:
        return window
    return await _of_ollama(root, model, fetch)


async def _of_ollama(root: str, model: str, fetch: Fetch) -> int | None:
    """Return the window with which the model is loaded, or will be by its own parameters.

    A server that does not list running models as Ollama does is asked nothing more.
    """
    answer = as_object(await fetch(f"{root}/api/ps", None))
    if not isinstance(answer.get("models"), list):
        return None
    for running in as_list(answer.get("models")):
        loaded = as_object(running)
        if model in (loaded.get("name"), loaded.get("model")) or loaded.get("name") == f"{model}:latest":
            return _window(loaded.get("context_length"))
    shown = as_object(await fetch(f"{root}/api/show", {"model": model}))
    match = re.search(r"(?m)^num_ctx\s+(\d{1,9})\s*$", as_text(shown.get("parameters")))
    return _window(int(match[1])) if match else None


def _listed(models: object, model: str) -> int | None:
    for item in map(as_object, as_list(as_object(models).get("data"))):
        if item.get("id") == model:
            return next((window for name in LISTED_FIELDS if (window := _window(item.get(name))) is not None), None)
    return None


def _window(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if SMALLEST_WINDOW <= value <= LARGEST_WINDOW else None
