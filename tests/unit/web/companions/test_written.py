"""Requests of the page about what agents wrote, as a companion gets them."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import httpx2
import pytest

from isthmus.encoding.codec import JsonObject
from isthmus.web.companion_site import CompanionSite
from isthmus.web.companions.reviews import CompanionRefusedError, NoSuchCompanionError
from isthmus.web.http.bundle import Bundle

pytestmark = pytest.mark.anyio

URL = "http://127.0.0.1:1234"


class OneCompanion:
    """A companion with the id 7 that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, object]]] = []

    async def waiting(self) -> list[JsonObject]:
        return []

    async def changes(self) -> AsyncGenerator[None]:
        yield

    async def ask(self, companion: str, command: str, arguments: Mapping[str, object]) -> JsonObject:
        if companion != "7":
            raise NoSuchCompanionError("it has ended")
        self.asked.append((command, dict(arguments)))
        if arguments.get("path") == "/mine":
            raise CompanionRefusedError("You changed this hunk since; undo is off. Nothing was written.")
        return {"changed": True} if arguments.get("state") == "old" else {"turns": []}


@pytest.fixture
def companion() -> OneCompanion:
    return OneCompanion()


@pytest.fixture
async def client(companion: OneCompanion) -> AsyncIterator[httpx2.AsyncClient]:
    site = CompanionSite(companion, URL, read=lambda: Bundle({}))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(site), base_url=f"{URL}/ui/api/") as found:
        code = site.link().partition("#code=")[2]
        paired = await found.post("pair", json={"code": code, "device": "A browser"})
        found.headers["Authorization"] = f"Bearer {paired.json()['token']}"
        yield found


async def test_the_list_and_the_files_of_turns_are_asked_for(
    companion: OneCompanion, client: httpx2.AsyncClient
) -> None:
    assert (await client.get("written/7")).json() == {"turns": []}
    await client.get("written/7", params={"path": "/tide é.py", "turn": "3"})
    await client.get("written/7", params={"path": "/tide.py"})
    assert companion.asked == [
        ("page_written", {}),
        ("page_written_file", {"path": "/tide é.py", "turn": 3}),
        ("page_written_file", {"path": "/tide.py"}),
    ]


async def test_decisions_say_who_decided_and_in_which_browser(
    companion: OneCompanion, client: httpx2.AsyncClient
) -> None:
    for given in (
        {"do": "keep", "state": "s.1"},
        {"do": "undo", "path": "/a.py", "turn": 2, "hunks": ["a1"], "unknown": 1},
        {"do": "take_back", "undo": 4},
    ):
        assert (await client.post("written/7", json=given)).status_code == 200
    assert companion.asked == [
        ("page_written_keep", {"state": "s.1", "by": "A browser", "browser": None}),
        ("page_written_undo", {"path": "/a.py", "turn": 2, "hunks": ["a1"], "by": "A browser", "browser": None}),
        ("page_written_take_back", {"undo": 4, "by": "A browser", "browser": None}),
    ]


async def test_a_refusal_comes_with_its_text(client: httpx2.AsyncClient) -> None:
    refused = await client.post("written/7", json={"do": "undo", "path": "/mine"})
    assert (refused.status_code, refused.json()["error"][:26]) == (403, "You changed this hunk sinc")
    changed = await client.post("written/7", json={"do": "keep", "state": "old"})
    assert (changed.status_code, changed.json()["changed"]) == (409, True)
    assert (await client.get("written/8")).status_code == 404
    assert (await client.get("written")).status_code == 404
    assert (await client.put("written/7")).status_code == 405


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"do": "written"},
        {"do": "undo", "path": 1},
        {"do": "undo", "turn": "1"},
        {"do": "undo", "turn": True},
        {"do": "take_back", "undo": 0},
        {"do": "keep", "hunks": [1]},
        {"do": "keep", "hunks": None},
        {"do": "keep", "state": None},
    ],
)
async def test_a_decision_of_another_shape_reaches_no_companion(
    companion: OneCompanion, client: httpx2.AsyncClient, given: dict[str, object]
) -> None:
    assert (await client.post("written/7", json=given)).status_code == 400
    assert (await client.get("written/7", params={"path": "/a", "turn": "x"})).status_code == 400
    assert companion.asked == []


async def test_only_a_device_is_told(client: httpx2.AsyncClient) -> None:
    del client.headers["Authorization"]
    assert (await client.get("written/7")).status_code == 401
    assert (await client.post("written/7", json={"do": "keep"})).status_code == 401
