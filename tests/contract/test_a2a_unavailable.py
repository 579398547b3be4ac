"""A server whose journal cannot be reached: each transport and version says 503, and when to ask again."""

from typing import Any, cast

import pytest

from isthmus.client import AgentClient
from isthmus.journal.port.base import JournalUnavailable
from support.a2a_serving import RawClient, prompt, rpc, serving
from support.a2a_v1 import ACTIVE, said

pytestmark = pytest.mark.anyio

TEXT = "the database is away"
UNAVAILABLE = -32050
STREAM_ONLY = {"Accept": "text/event-stream"}


class AwayAgent:
    """An agent of which nothing can be asked, since its journal is away."""

    def __getattr__(self, name: str) -> Any:
        async def away(*_: object, **__: object) -> None:
            raise JournalUnavailable(TEXT)

        return away

    async def aclose(self) -> None: ...


def away() -> AgentClient:
    return cast("AgentClient", AwayAgent())


async def asked(
    client: RawClient, method: str, path: str, headers: dict[str, str], body: object = None
) -> tuple[int, str | None, Any]:
    """Return status, Retry-After and JSON of an answer."""
    response = await client.http.request(method, client.url + path, headers=headers, json=body)
    return response.status_code, response.headers.get("retry-after"), response.json()


@pytest.mark.parametrize(
    ("method", "params", "headers"),
    [
        ("message/send", prompt("hello", "/tmp"), {}),
        ("message/stream", prompt("hello", "/tmp"), {}),
        ("tasks/get", {"id": "one"}, {}),
        ("tasks/resubscribe", {"id": "one"}, {}),
        ("SendMessage", said("hello", "/tmp"), ACTIVE),
        ("SendStreamingMessage", said("hello", "/tmp"), ACTIVE),
        ("GetTask", {"id": "one"}, ACTIVE),
        ("SubscribeToTask", {"id": "one"}, ACTIVE),
    ],
)
async def test_json_rpc_says_when_to_ask_again(method: str, params: Any, headers: dict[str, str]) -> None:
    async with serving(away()) as client:
        status, later, answer = await asked(client, "POST", "", headers, rpc(method, params))
    assert (status, later) == (503, "5")
    assert (answer["id"], answer["error"]["code"]) == (7, UNAVAILABLE)
    assert TEXT in answer["error"]["message"]


async def test_a_client_that_reads_streams_alone_gets_the_status_too() -> None:
    async with serving(away()) as client:
        body = rpc("message/stream", prompt("hello", "/tmp"))
        response = await client.http.post(client.url, json=body, headers=STREAM_ONLY)
    assert (response.status_code, response.headers["retry-after"]) == (503, "5")
    assert response.headers["content-type"].startswith("text/event-stream")
    assert f'"code":{UNAVAILABLE}' in response.text


@pytest.mark.parametrize(
    ("verb", "path", "body"),
    [
        ("GET", "v1/tasks/one", None),
        ("POST", "v1/message:send", prompt("hello", "/tmp")),
        ("GET", "tasks/one", None),
        ("GET", "tasks", None),
        ("POST", "message:send", said("hello", "/tmp")),
        ("POST", "message:stream", said("hello", "/tmp")),
    ],
)
async def test_rest_says_when_to_ask_again(verb: str, path: str, body: object) -> None:
    async with serving(away()) as client:
        status, later, answer = await asked(client, verb, path, {} if path.startswith("v1/") else ACTIVE, body)
    assert (status, later) == (503, "5")
    assert TEXT in str(answer)


@pytest.mark.parametrize(("verb", "path"), [("GET", "listCommands"), ("GET", "tasks/one/metadata")])
async def test_the_routes_of_coding_agents_say_when_to_ask_again(verb: str, path: str) -> None:
    async with serving(away()) as client:
        status, later, answer = await asked(client, verb, path, {})
    assert (status, later) == (503, "5")
    assert TEXT in answer["error"]


async def test_other_errors_of_json_rpc_stay_in_the_body_of_a_success() -> None:
    async with serving(away()) as client:
        status, later, answer = await asked(client, "POST", "", {}, rpc("tasks/gett", {}))
    assert (status, later, answer["error"]["code"]) == (200, None, -32601)
