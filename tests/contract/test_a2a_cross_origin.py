"""Web pages of other origins: the public card for all of them, A2A for those that the owner names, and nothing else."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.web.http.bundle import Bundle
from isthmus.web.pages import WorkbenchPages
from support.a2a_serving import EXTENSION, TOKEN, RawClient, prompt, rpc, serving
from support.a2a_v1 import PLAIN, said
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio

APP = "https://app.example"
OTHER = "https://other.example"
CARD = ".well-known/agent-card.json"
ALLOW = "access-control-allow-origin"
ASKED = "authorization,content-type,a2a-version,a2a-extensions,x-a2a-extensions,last-event-id"


@asynccontextmanager
async def served(*origins: str, pages: WorkbenchPages | None = None) -> AsyncGenerator[RawClient]:
    options = ServerOptions(TOKEN, allowed_origins=origins)
    async with serving(MemoryAgent(), options, pages=pages) as server:
        yield server


def preflight(origin: str, method: str = "POST") -> dict[str, str]:
    """Return the headers of a preflight request, which browsers send without a token."""
    return {
        "Authorization": "",
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": ASKED,
    }


def words(response: httpx2.Response, header: str) -> set[str]:
    return {word.strip().lower() for word in response.headers.get(header, "").split(",")}


@pytest.mark.parametrize("origins", [(), (APP,)])
async def test_every_page_may_read_the_public_card(origins: tuple[str, ...]) -> None:
    async with served(*origins) as server:
        for origin in (APP, OTHER, "null"):
            for path in (CARD, ".well-known/agent.json"):
                answer = await server.http.get(server.url + path, headers={"Origin": origin, "Authorization": ""})
                assert (answer.status_code, answer.headers[ALLOW]) == (200, "*")
                known = {"Origin": origin, "If-None-Match": answer.headers["etag"]}
                assert (await server.http.get(server.url + path, headers=known)).headers[ALLOW] == "*"
            asked = await server.http.options(server.url + CARD, headers=preflight(origin, "GET"))
            assert (asked.status_code, asked.headers[ALLOW]) == (204, "*")
            assert words(asked, "access-control-allow-methods") == {"get", "head"}
            posted = await server.http.post(server.url + CARD, headers={"Origin": origin})
            assert posted.status_code == 403
            assert ALLOW not in posted.headers


async def test_a_page_of_a_named_origin_sends_requests_with_a_token(workspace: Path) -> None:
    async with served(APP, "http://localhost:5173") as server:
        asked = await server.http.options(server.url, headers=preflight(APP))
        assert (asked.status_code, asked.headers[ALLOW], asked.headers["vary"]) == (204, APP, "Origin")
        assert set(ASKED.split(",")) < words(asked, "access-control-allow-headers")
        assert words(asked, "access-control-allow-methods") == {"get", "post", "delete"}
        headers = {**EXTENSION, "Origin": APP}
        sent = await server.http.post(server.url, json=rpc("message/send", prompt("hi", workspace)), headers=headers)
        assert sent.json()["result"]["status"]["state"] == "completed"
        assert (sent.headers[ALLOW], sent.headers["vary"]) == (APP, "Origin")
        assert {"a2a-extensions", "x-a2a-extensions", "retry-after"} < words(sent, "access-control-expose-headers")
        stream = await server.http.post(
            server.url, json=rpc("message/stream", prompt("hi", workspace)), headers=headers
        )
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers[ALLOW] == APP
        body = said("hi", workspace)
        rest = await server.http.post(server.url + "message:send", json=body, headers={**PLAIN, "Origin": APP})
        assert (rest.status_code, rest.headers[ALLOW]) == (200, APP)


async def test_a_page_of_a_named_origin_reads_why_it_is_refused() -> None:
    async with served(APP) as server:
        refused = await server.http.post(server.url, content=b"{}", headers={"Origin": APP, "Authorization": ""})
        missing = await server.http.get(server.url + "nowhere", headers={"Origin": APP})
        large = await server.http.post(server.url, content=b" " * 21_000_000, headers={"Origin": APP})
        for answer, status in ((refused, 401), (missing, 404), (large, 413)):
            assert (answer.status_code, answer.headers[ALLOW]) == (status, APP)
        assert "www-authenticate" in words(refused, "access-control-expose-headers")


@pytest.mark.parametrize(
    "origin", [OTHER, "null", "https://app.example:8443", "http://app.example", "https://app.example.evil", f"{APP}/"]
)
async def test_a_page_of_any_other_origin_gets_nothing(origin: str) -> None:
    async with served(APP) as server:
        asked = await server.http.options(server.url, headers=preflight(origin))
        sent = await server.http.post(server.url, json=rpc("tasks/get", {"id": "x"}), headers={"Origin": origin})
        for answer in (asked, sent):
            assert answer.status_code == 403
            assert ALLOW not in answer.headers


async def test_cookies_open_nothing_to_a_page_of_another_origin() -> None:
    async with served(APP) as server:
        headers = {"Origin": APP, "Cookie": "session=1"}
        sent = await server.http.post(server.url, json=rpc("tasks/get", {"id": "x"}), headers=headers)
        assert sent.status_code == 403
        assert ALLOW not in sent.headers
        own = {"Origin": server.url.rstrip("/"), "Cookie": "session=1"}
        assert (await server.http.post(server.url, json=rpc("tasks/get", {"id": "x"}), headers=own)).status_code == 200
        for path, method in (("", "POST"), (CARD, "GET")):
            asked = await server.http.options(server.url + path, headers=preflight(APP, method))
            assert "access-control-allow-credentials" not in asked.headers


async def test_a_foreign_name_is_refused_whatever_the_origin_is() -> None:
    async with served(APP) as server:
        headers = {"Host": "evil.example", "Origin": APP}
        for path in ("", CARD):
            answer = await server.http.request("GET" if path else "POST", server.url + path, headers=headers)
            assert answer.status_code == 403
            assert ALLOW not in answer.headers


@pytest.mark.parametrize("path", ["ui/", "ui/api/session", "healthz", "readyz"])
async def test_the_workbench_and_the_probes_are_for_no_other_page(path: str, tmp_path: Path) -> None:
    pages = WorkbenchPages(Bundle({}), UsersFile(tmp_path / "users.json"), "Isthmus")
    async with served(APP, pages=pages) as server:
        for method in ("GET", "OPTIONS"):
            headers = preflight(APP, "GET") if method == "OPTIONS" else {"Origin": APP}
            answer = await server.http.request(method, server.url + path, headers=headers)
            assert answer.status_code == 403
            assert ALLOW not in answer.headers


async def test_without_named_origins_nothing_is_told_but_of_the_card() -> None:
    async with served() as server:
        answer = await server.http.post(server.url, json=rpc("tasks/get", {"id": "x"}))
        assert ALLOW not in answer.headers
        assert "vary" not in answer.headers
    async with served(APP) as server:  # a cache must not give the answer for one origin to another
        assert (await server.http.post(server.url, json=rpc("tasks/get", {"id": "x"}))).headers["vary"] == "Origin"
