"""The workbench of a companion without its companion: who is let in, and what is served."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, MutableMapping
from typing import Any

import httpx2
import pytest

from isthmus.encoding.codec import JsonObject
from isthmus.web.companion_site import CompanionSite
from isthmus.web.companions.reviews import NoSuchCompanionError
from isthmus.web.http.bundle import Bundle, PageFile

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:1234"


class NoCompanions:
    """A machine on which no companion runs."""

    async def waiting(self) -> list[JsonObject]:
        return []

    async def changes(self) -> AsyncGenerator[None]:
        yield

    async def ask(self, companion: str, command: str, arguments: Mapping[str, object]) -> JsonObject:
        raise NoSuchCompanionError("none runs")


@pytest.fixture
def site() -> CompanionSite:
    page = PageFile(b"the page", b"the page", "text/html", '"1"', is_fixed=False)
    return CompanionSite(NoCompanions(), URL, read=lambda: Bundle({"/ui/index.html": page}))


@pytest.fixture
async def client(site: CompanionSite) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(site), base_url=URL) as found:
        yield found


async def test_a_link_lets_one_browser_in(site: CompanionSite, client: httpx2.AsyncClient) -> None:
    assert (await client.get("/ui/")).text == "the page"
    assert (await client.get("/ui/api/reviews")).status_code == 401
    address, _, code = site.link().partition("#code=")
    assert address == f"{URL}/ui/"
    paired = await client.post("/ui/api/pair", json={"code": code, "device": "A browser"})
    head = {"Authorization": f"Bearer {paired.json()['token']}"}
    assert (await client.post("/ui/api/pair", json={"code": code, "device": "A browser"})).status_code == 403
    session = (await client.get("/ui/api/session", headers=head)).json()
    assert (session["tasks"], session["reviews"]) == (False, True)
    assert (await client.get("/ui/api/reviews", headers=head)).json() == {"companions": []}
    assert (await client.get("/ui/api/reviews/1.x", headers=head)).status_code == 404
    (device,) = (await client.get("/ui/api/devices", headers=head)).json()["devices"]
    await client.delete(f"/ui/api/devices/{device['id']}", headers=head)
    assert (await client.get("/ui/api/reviews", headers=head)).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/ui/", {"Host": "evil.test"}, 403),
        ("POST", "/ui/api/pair", {"Origin": "http://evil.test"}, 403),
        ("GET", "/tasks", {}, 404),
        ("POST", "/", {}, 404),
        ("POST", "/ui/api/pair", {}, 400),
        ("GET", "/ui/missing.js", {}, 404),
    ],
)
async def test_what_is_not_the_pages_is_refused(
    client: httpx2.AsyncClient, method: str, path: str, headers: dict[str, str], status: int
) -> None:
    assert (await client.request(method, path, headers=headers)).status_code == status


async def test_a_body_that_is_too_large_is_refused(client: httpx2.AsyncClient) -> None:
    assert (await client.post("/ui/api/pair", content="x" * 20_000)).status_code == 413


async def test_the_stream_of_changes_tells_of_reviews_and_ends_with_its_device(
    site: CompanionSite, client: httpx2.AsyncClient
) -> None:
    code = site.link().partition("#code=")[2]
    token = (await client.post("/ui/api/pair", json={"code": code, "device": "A browser"})).json()["token"]
    head = {"Authorization": f"Bearer {token}"}
    body = bytearray()
    revoked = False

    async def receive() -> dict[str, object]:
        await asyncio.Event().wait()
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        nonlocal revoked
        body.extend(message.get("body", b""))
        if b'"reviews"' in body and not revoked:
            revoked = True
            (device,) = (await client.get("/ui/api/devices", headers=head)).json()["devices"]
            await client.delete(f"/ui/api/devices/{device['id']}", headers=head)

    headers = [(b"host", b"127.0.0.1:1234"), (b"authorization", f"Bearer {token}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/ui/api/changes", "headers": headers, "query_string": b""}
    async with asyncio.timeout(10):
        await site(scope, receive, send)
    assert (b'data: {"reviews":true}' in body, b"no longer valid" in body) == (True, True)
    assert (await client.get("/ui/api/changes")).status_code == 401
