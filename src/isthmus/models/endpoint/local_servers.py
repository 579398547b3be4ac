"""Model servers on this machine: whether Ollama, llama.cpp or another server answers, and with which model.

They are asked only if nothing else decides the model. Every request has a short deadline, and an unexpected answer
counts as no server.
"""

import contextlib
import ipaddress
import json
import threading
from collections.abc import Mapping
from urllib.parse import urlsplit

from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.record import record

DEADLINE = 0.3
"""Deadline in seconds of one request, from the connection to the last byte."""
MAXIMUM_ANSWER = 1 << 20
OLLAMA = "http://127.0.0.1:11434"
LLAMA_CPP = "http://127.0.0.1:8080"


@record
class LocalServer:
    """A server that answered. ``base_url`` is for OpenAI's protocol and ends in ``/v1``."""

    title: str
    base_url: str
    model: str


def find_local_server(environment: Mapping[str, str], llama_cpp: str = LLAMA_CPP) -> LocalServer | None:
    """Return the first of Ollama and llama.cpp that answers at its address and has a model for chat."""
    ollama = ollama_address(environment)
    if model := _ollama_model(ollama):
        return LocalServer("Ollama", f"{ollama}/v1", model)
    if model := served_model(f"{llama_cpp}/v1"):
        return LocalServer("llama.cpp", f"{llama_cpp}/v1", model)
    return None


def ollama_address(environment: Mapping[str, str]) -> str:
    """Return Ollama's address from OLLAMA_HOST, in any of its forms (`HOST`, `HOST:PORT`, `:PORT`, a URL)."""
    host = environment.get("OLLAMA_HOST", "").strip().rstrip("/")
    if not host:
        return OLLAMA
    scheme, separator, rest = host.partition("://")
    scheme, rest = (scheme, rest) if separator else ("http", host)
    if rest.startswith(":"):
        rest = f"127.0.0.1{rest}"
    try:
        parts = urlsplit(f"{scheme}://{rest}")
        port = parts.port or {"http": 80, "https": 443}.get(scheme if separator else "", 11434)
    except ValueError:
        return OLLAMA
    name = parts.hostname or "127.0.0.1"
    with contextlib.suppress(ValueError):
        # A server may listen on every address; a client needs one.
        if (address := ipaddress.ip_address(name)).is_unspecified:
            name = "127.0.0.1" if address.version == 4 else "::1"
    return f"{scheme}://{f'[{name}]' if ':' in name else name}:{port}{parts.path}"


def served_model(base_url: str) -> str | None:
    """Return the first model that a server with OpenAI's protocol lists; None if it does not answer in time."""
    for model in as_list(as_object(_get(f"{base_url}/models")).get("data")):
        if name := as_text(as_object(model).get("id")):
            return name
    return None


def _ollama_model(address: str) -> str | None:
    """Return the most recently used model, except embedding models, which cannot chat."""
    for model in as_list(as_object(_get(f"{address}/api/tags")).get("models")):
        name = as_text(as_object(model).get("name")) or as_text(as_object(model).get("model"))
        family = as_text(as_object(as_object(model).get("details")).get("family"))
        if name and "embed" not in name and "bert" not in family:
            return name
    return None


def _get(url: str) -> object:
    """Return the JSON at a URL; None without an answer in time."""
    answers: list[object] = []
    # A thread, because the timeout of a socket restarts with every byte.
    asking = threading.Thread(target=lambda: answers.append(_ask(url)), daemon=True)
    asking.start()
    asking.join(DEADLINE)
    return answers[0] if answers else None


def _ask(url: str) -> object:
    import http.client

    parts = urlsplit(url)
    if parts.scheme != "http":
        return None
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=DEADLINE)
    try:
        connection.request("GET", parts.path, headers={"Accept": "application/json"})
        response = connection.getresponse()
        return json.loads(response.read(MAXIMUM_ANSWER)) if response.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException, RecursionError):
        return None
    finally:
        connection.close()
