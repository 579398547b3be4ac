"""The names of a provider's models, as its server lists them.

A server that does not answer, or answers in another form, lists none: the user may name any model in any case.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.models.endpoint.endpoint import ModelEndpoint, configured_by, endpoint
from isthmus.models.endpoint.http import Timeouts, http_client
from isthmus.models.endpoint.providers import PROVIDERS, Provider
from isthmus.models.port.base import ModelError

if TYPE_CHECKING:
    import httpx2

SECONDS = 5.0
"""Maximum time for all lists."""
MAXIMUM_NAMES = 300
"""Maximum number of names of one provider."""
MAXIMUM_BYTES = 2_000_000
LONGEST_LIST = 16 << 20
"""Maximum number of bytes of a server's own list of models, which may be of a router with thousands."""
_ANTHROPIC_VERSION = "2023-06-01"


async def list_model_names(environment: Mapping[str, str]) -> Sequence[str]:
    """Return the names of the models of all providers with a key in the environment, as in ``--model``."""
    providers = [provider for provider in PROVIDERS if configured_by(provider, environment) is not None]
    found = await asyncio.gather(*(_names_of(provider, environment) for provider in providers))
    return tuple(dict.fromkeys(name for names in found for name in names))


async def _names_of(provider: Provider, environment: Mapping[str, str]) -> Sequence[str]:
    try:
        async with asyncio.timeout(SECONDS):
            where = endpoint(provider, environment)
            names = listed_names(provider, await _fetch(where, environment))
    except (ModelError, TimeoutError):
        return ()
    if where.base_url == provider.base_url:
        # The provider's own list also has models that are not for conversations, which have other names.
        names = [name for name in names if provider.names.match(name)]
    # A bare name is enough where it tells the provider.
    return [name if provider.names.match(name) else f"{provider.id}:{name}" for name in sorted(names)]


def listed_names(provider: Provider, answer: object) -> Sequence[str]:
    """Return the names in a provider's list of models; empty for an answer of another form."""
    names: list[str] = []
    for item in map(as_object, as_list(as_object(answer).get("models" if provider.id == "gemini" else "data"))):
        if provider.id == "gemini" and "generateContent" not in as_list(item.get("supportedGenerationMethods")):
            continue
        name = as_text(item.get("name" if provider.id == "gemini" else "id")).removeprefix("models/")
        if name and len(name) <= 200 and name.isprintable() and " " not in name:
            names.append(name)
    return names[:MAXIMUM_NAMES]


def list_request(where: ModelEndpoint) -> tuple[str, Mapping[str, str]]:
    """Return the URL and the headers of the request for a provider's list."""
    secret = where.secrets[0] if where.secrets else ""
    match where.provider.id:
        case "gemini":
            return f"{where.base_url}/v1beta/models?pageSize=1000", {"x-goog-api-key": secret} if secret else {}
        case "anthropic":
            kept = {"x-api-key": where.key} if where.key else {"authorization": f"Bearer {secret}"}
            return f"{where.base_url}/v1/models?limit=1000", {**kept, "anthropic-version": _ANTHROPIC_VERSION}
        case _:
            return f"{where.base_url}/models", {"authorization": f"Bearer {secret}"} if secret else {}


async def _fetch(where: ModelEndpoint, environment: Mapping[str, str]) -> object:
    url, headers = list_request(where)
    client = http_client(where, environment, Timeouts(SECONDS, SECONDS))
    try:
        return await fetch_json(client, url, None, headers=headers, longest=MAXIMUM_BYTES)
    finally:
        await client.aclose()


async def fetch_json(
    http: "httpx2.AsyncClient",
    url: str,
    body: Mapping[str, Any] | None,
    *,
    headers: Mapping[str, str],
    longest: int = LONGEST_LIST,
) -> object:
    """Return the JSON at a URL, after a POST if there is a body; None for another answer, or more than ``longest``."""
    import httpx2

    received = bytearray()
    try:
        async with http.stream("GET" if body is None else "POST", url, headers=headers, json=body) as response:
            if response.status_code != 200:
                return None
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > longest:
                    return None
        return json.loads(received)
    except (httpx2.HTTPError, ModelError, ValueError, RecursionError):
        return None
