"""HTTP in A2A 1.0: media types, cards and their caching, errors before a stream."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from isthmus.encoding.json_text import encode
from support.a2a_serving import rpc
from support.a2a_v1 import Client, said
from support.memory_agent import conversation
from support.script_agent import serve_with

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with serve_with("engine", tmp_path)(conversation) as raw:
        yield Client(raw, "HTTP+JSON")


async def test_errors_over_http_are_json_unless_the_client_wants_the_media_type_of_a2a(client: Client) -> None:
    url = f"{client.raw.url}tasks/unknown"
    for accept, kind in (
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("application/json, application/a2a+json", "application/json"),
        ("application/a2a+json", "application/a2a+json"),
    ):
        found = await client.raw.http.get(url, headers={"A2A-Version": "1.0", "Accept": accept})
        assert (found.status_code, found.headers["content-type"]) == (404, kind)
        assert found.json()["error"]["status"] == "NOT_FOUND"
        assert found.json()["error"]["message"].startswith("Task not found")


async def test_a_body_that_is_not_json_by_its_type_is_refused(client: Client) -> None:
    raw = client.raw
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        headers = {"A2A-Version": "1.0", "Content-Type": kind}
        found = await raw.http.post(raw.url, content=encode(rpc("ListTasks", {})), headers=headers)
        assert found.json()["error"]["code"] == -32005
        found = await raw.http.post(f"{raw.url}message:send", content=encode(said("hello")), headers=headers)
        assert (found.status_code, found.json()["error"]["details"][0]["reason"]) == (415, "CONTENT_TYPE_NOT_SUPPORTED")
    for kind in ("application/json; charset=utf-8", "application/a2a+json"):
        headers = {"A2A-Version": "1.0", "Content-Type": kind}
        found = await raw.http.post(raw.url, content=encode(rpc("ListTasks", {})), headers=headers)
        assert found.json()["result"]["tasks"] == []


async def test_an_error_before_a_stream_of_1_0_is_json(client: Client) -> None:
    raw = client.raw
    headers = {"A2A-Version": "1.0", "Accept": "text/event-stream"}
    found = await raw.http.post(raw.url, json=rpc("SubscribeToTask", {"id": "unknown"}), headers=headers)
    assert found.headers["content-type"] == "application/json"
    assert found.json()["error"]["code"] == -32001


async def test_a_card_is_of_the_version_that_is_asked_for_and_else_of_both(client: Client) -> None:
    raw = client.raw
    place = f"{raw.url}.well-known/agent-card.json"
    both = (await raw.http.get(place)).json()
    new = await raw.http.get(place, headers={"A2A-Version": "1.0"})
    old = (await raw.http.get(place, headers={"A2A-Version": "0.3"})).json()
    of_old = {"protocolVersion", "url", "preferredTransport", "additionalInterfaces", "security"}
    of_old |= {"supportsAuthenticatedExtendedCard"}
    of_new = {"supportedInterfaces", "securityRequirements"}
    assert of_old | of_new < both.keys()
    assert new.json().keys() == both.keys() - of_old
    assert old.keys() == both.keys() - of_new
    assert new.json()["securitySchemes"] == {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}}
    assert old["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}
    assert "stateTransitionHistory" not in new.json()["capabilities"]
    assert new.headers["vary"] == "A2A-Version"
    extended = await client.call("GetExtendedAgentCard", {})
    assert extended.keys() == new.json().keys()


async def test_a_card_that_has_not_changed_is_not_sent_again(client: Client) -> None:
    raw = client.raw
    place = f"{raw.url}.well-known/agent-card.json"
    modified = (await raw.http.get(place)).headers["last-modified"]
    assert (await raw.http.get(place, headers={"If-Modified-Since": modified})).status_code == 304
    for other in ("Thu, 01 Jan 1970 00:00:00 GMT", "yesterday"):
        assert (await raw.http.get(place, headers={"If-Modified-Since": other})).status_code == 200
