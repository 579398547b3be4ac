"""Asks a registry that speaks the MCP registry's API (v0.1); used by ``isthmus mcp search`` and ``install``."""

import json
import os
import time
from typing import Any, cast
from urllib.parse import quote, urlsplit

import click

from isthmus.errors import IsthmusError
from isthmus.mcp_host.config.registry_entry import RegistryServer, registry_server
from isthmus.network.loopback import is_loopback
from isthmus.programs.setup.setup import BadInputError

PUBLIC_REGISTRY = "https://registry.modelcontextprotocol.io"
REGISTRY_VARIABLE = "ISTHMUS_MCP_REGISTRY"
ANSWER_SECONDS = 30.0
"""Maximum time in seconds for an answer. The public registry needs up to 20 s for a search."""
MAXIMUM_ANSWER_BYTES = 4 * 1024 * 1024

registry_option = click.option(
    "--registry",
    metavar="URL",
    help=f"The registry to ask. Default: the variable {REGISTRY_VARIABLE}, else {PUBLIC_REGISTRY}.",
)


class RegistryError(IsthmusError):
    """The registry did not answer as expected."""


def search(registry: str | None, words: str, limit: int) -> list[RegistryServer]:
    """Return the newest versions of the servers whose names contain the words.

    Raises:
        RegistryError: the registry did not answer as expected.
    """
    answer = _get(registry, f"/v0.1/servers?search={quote(words, safe='')}&version=latest&limit={limit}")
    found: object = answer.get("servers")
    if found is None:
        return []
    if not isinstance(found, list):
        raise RegistryError("the registry sent no list of servers")
    return [registry_server(item) for item in cast("list[object]", found)[:limit]]


def get(registry: str | None, name: str, version: str) -> RegistryServer:
    """Return a version of the server with that name; ``latest`` is the newest.

    Raises:
        RegistryError: there is none, or the registry did not answer as expected.
    """
    server = registry_server(_get(registry, f"/v0.1/servers/{quote(name, safe='')}/versions/{quote(version, safe='')}"))
    if server.name != name:
        raise RegistryError(f"the registry sent another server than {name!r}: {server.name!r}")
    return server


def _base(registry: str | None) -> str:
    base = (registry or os.environ.get(REGISTRY_VARIABLE) or PUBLIC_REGISTRY).rstrip("/")
    try:
        parts = urlsplit(base)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    except ValueError:
        is_safe = False
    if not is_safe:
        raise BadInputError(f"--registry {base[:200]!r}: expected an https URL; what it says is run here")
    return base


def _get(registry: str | None, path: str) -> dict[str, Any]:
    base = _base(registry)
    return get_json(base, path, missing=f"{base} has no such server; isthmus mcp search WORDS looks for one")


def get_json(base: str, path: str, *, missing: str) -> dict[str, Any]:
    """Return the JSON object at a path below ``base``; ``missing`` is the error for what is not there.

    Raises:
        RegistryError: there is none.
    """
    import httpx2

    from isthmus.network.client_tls import client_tls

    deadline = time.monotonic() + ANSWER_SECONDS
    body = bytearray()
    try:
        with (
            httpx2.Client(timeout=ANSWER_SECONDS, follow_redirects=False, verify=client_tls()) as client,
            client.stream("GET", base + path, headers={"Accept": "application/json"}) as response,
        ):
            for chunk in response.iter_bytes(64 * 1024):
                body += chunk
                if len(body) > MAXIMUM_ANSWER_BYTES or time.monotonic() > deadline:
                    raise RegistryError(f"{base} sends too much or too slowly")
            status = response.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise RegistryError(f"{base} cannot be reached: {error or type(error).__name__}") from error
    if status == 404:
        raise RegistryError(missing)
    try:
        value: object = json.loads(bytes(body)) if status == 200 else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise RegistryError(f"{base} answered with HTTP {status}, expected a JSON object with status 200")
    return cast("dict[str, Any]", value)
