import asyncio
import json
import re
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from typing_extensions import override

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.push.sender import PushSender
from isthmus.a2a.push.targets import PushRule
from isthmus.a2a.server.application import application
from isthmus.a2a.server.users.auth import UserAccess
from isthmus.a2a.server.users.users import BrowserPush
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.client import CommandScope
from isthmus.development_tool import SlashCommand
from isthmus.errors import IsthmusError
from isthmus.journal.port.base import JournalUnavailable
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.web.http.bundle import Bundle, read_bundle
from isthmus.web.pages import WorkbenchPages
from isthmus.web.pairing.paired_devices import MAXIMUM_DEVICES
from isthmus.web.push.answering import PushedAnswers
from isthmus.web.push.notifications import Notifications
from isthmus.web.push.sent_file import SentFile
from isthmus.web.push.sent_questions import AnswerRecord, AnswerToken, SentQuestion, token_digest
from isthmus.web.sessions.changes import ChangeFeed
from isthmus.web.sessions.sessions import SessionsApi
from isthmus.web.view import ChangedQuestionError, NotShownError
from support.memory_agent import MemoryAgent
from support.push_reader import BrowserKeys
from support.push_service import KnownTasks
from support.qr_reader import read_qr

pytestmark = pytest.mark.anyio


class CommandingAgent(MemoryAgent):
    @override
    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        return [SlashCommand("help", "Lists the commands"), SlashCommand("memory", "Shows it")]


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    (tmp_path / "ui").mkdir()
    (tmp_path / "ui" / "index.html").write_text("<!doctype html>the page" + " " * 500)
    return read_bundle(tmp_path / "ui")


@pytest.fixture
def pages(tmp_path: Path, bundle: Bundle) -> WorkbenchPages:
    return WorkbenchPages(bundle, UsersFile(tmp_path / "users.json"), "Isthmus", ("/work",))


@pytest.fixture
async def client(pages: WorkbenchPages) -> AsyncIterator[httpx2.AsyncClient]:
    access = UserAccess(pages.users.table)
    app = application(MemoryAgent(lambda _: []), ServerOptions("owner-token"), access=access, pages=pages)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:80") as found:
        yield found


async def pair(client: httpx2.AsyncClient, pages: WorkbenchPages, user: str = "", device: str = "Laptop") -> str:
    code = pages.codes.short(user, pages.clock()).text
    answer = await client.post("/ui/api/pair", json={"code": code, "device": device})
    assert answer.status_code == 200, answer.text
    return answer.json()["token"]


async def test_the_page_is_public_and_its_api_is_not(client: httpx2.AsyncClient) -> None:
    page = await client.get("/ui/")
    assert (page.status_code, page.headers["content-encoding"]) == (200, "gzip")
    assert "the page" in page.text
    again = await client.get("/ui/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert (await client.get("/", follow_redirects=False)).headers["location"] == "/ui/"
    for path in ("session", "devices"):
        assert (await client.get(f"/ui/api/{path}")).status_code == 401
    assert (await client.post("/ui/api/codes")).status_code == 401
    assert (await client.post("/ui/")).status_code == 405
    assert (await client.get("/ui/api/other", headers={"Authorization": "Bearer owner-token"})).status_code == 404


async def test_devices_of_one_user_have_names_of_their_own(client: httpx2.AsyncClient, pages: WorkbenchPages) -> None:
    for user in ("", "", "", "ann"):
        await pair(client, pages, user, "Chrome on Linux")
    names = sorted((entry.name, entry.device) for entry in pages.users.table().entries.values())
    assert names == [
        ("", "Chrome on Linux"),
        ("", "Chrome on Linux 2"),
        ("", "Chrome on Linux 3"),
        ("ann", "Chrome on Linux"),
    ]


async def test_a_paired_device_uses_the_api_and_a2a(client: httpx2.AsyncClient, pages: WorkbenchPages) -> None:
    token = await pair(client, pages, device=" Lap\u202etop\n" + "x" * 100)
    head = {"Authorization": f"Bearer {token}"}
    session = (await client.get("/ui/api/session", headers=head)).json()
    assert (session["user"], session["agent"], session["workspaces"]) == ("", "Isthmus", ["/work"])
    assert "\u202e" not in session["device"]["label"]
    assert len(session["device"]["label"]) <= 60
    await pair(client, pages, user="ann")
    assert (await client.get("/ui/api/session", headers=head)).json()["devices"] == 1
    assert (await client.get("/ui/api/use", headers=head)).json() == {}
    prices = await client.post("/ui/api/prices", json={"models": ["gpt-5"]}, headers=head)
    assert prices.json() == {"prices": {}}
    assert (await client.get("/tasks", headers={**head, "A2A-Version": "1.0"})).status_code == 200
    code = (await client.post("/ui/api/codes", headers=head)).json()
    assert code["seconds"] == 60
    assert pages.codes.use(code["code"], pages.clock()).user == ""


async def test_devices_of_others_are_neither_seen_nor_removed(
    client: httpx2.AsyncClient, pages: WorkbenchPages
) -> None:
    alice = {"Authorization": f"Bearer {await pair(client, pages, 'alice', 'Phone')}"}
    bob = {"Authorization": f"Bearer {await pair(client, pages, 'bob', 'Tablet')}"}
    listed = (await client.get("/ui/api/devices", headers=alice)).json()
    assert [device["label"] for device in listed["devices"]] == ["Phone"]
    assert (await client.delete(f"/ui/api/devices/{listed['this']}", headers=bob)).status_code == 404
    assert (await client.delete(f"/ui/api/devices/{listed['this']}", headers=alice)).json() == {
        "revoked": listed["this"],
        "with": [],
    }
    assert (await client.get("/ui/api/session", headers=alice)).status_code == 401


@pytest.mark.parametrize(
    "body", ["", "[]", "{", '{"code": 1, "device": "x"}', '{"code": "x"}', '{"code": "AAAA", "device": "x"}']
)
async def test_bad_requests_to_pair_are_refused(client: httpx2.AsyncClient, body: str) -> None:
    answer = await client.post("/ui/api/pair", content=body)
    assert answer.status_code in (400, 403)
    assert answer.json()["error"]
    assert (await client.post("/ui/api/pair", content="x" * 20_000)).status_code == 413


async def test_the_number_of_devices_is_limited(client: httpx2.AsyncClient, pages: WorkbenchPages) -> None:
    for _ in range(MAXIMUM_DEVICES):
        pages.users.change(lambda table: (table.with_device("", "x", 0, 1e12)[0], None))
    code = pages.codes.short("", pages.clock()).text
    refused = await client.post("/ui/api/pair", json={"code": code, "device": "x"})
    assert refused.status_code == 409


async def test_a_file_of_users_that_is_broken_lets_nobody_in(
    client: httpx2.AsyncClient, pages: WorkbenchPages, tmp_path: Path
) -> None:
    token = await pair(client, pages)
    (tmp_path / "users.json").write_text(json.dumps({"version": 99}))
    assert (await client.get("/ui/api/session", headers={"Authorization": f"Bearer {token}"})).status_code == 401
    code = pages.codes.short("", pages.clock()).text
    assert (await client.post("/ui/api/pair", json={"code": code, "device": "x"})).status_code == 503


async def test_lines_are_completed_by_the_agent_of_the_user(client: httpx2.AsyncClient, pages: WorkbenchPages) -> None:
    head = {"Authorization": f"Bearer {await pair(client, pages, 'alice')}"}
    assert (await client.post("/ui/api/complete", json={"line": "/he"}, headers=head)).json() == {"completions": []}
    asked: list[str] = []

    def agent_of(user: str) -> MemoryAgent:
        asked.append(user)
        return CommandingAgent(lambda _: [])

    pages.agent_of = agent_of
    answer = (await client.post("/ui/api/complete", json={"line": "/he"}, headers=head)).json()
    assert answer == {"completions": [{"line": "/help", "description": "Lists the commands"}]}
    assert asked == ["alice"]
    wrong: list[dict[str, object]] = [{}, {"line": 1}, {"line": "/", "contextId": 2}, {"line": "/", "workspace": True}]
    for body in wrong:
        assert (await client.post("/ui/api/complete", json=body, headers=head)).status_code == 400
    assert (await client.post("/ui/api/complete", json={"line": "/"})).status_code == 401


async def test_a_code_comes_with_a_link_and_a_drawing_for_other_devices(
    client: httpx2.AsyncClient, pages: WorkbenchPages
) -> None:
    head = {"Authorization": f"Bearer {await pair(client, pages)}"}

    async def code(body: str) -> httpx2.Response:
        return await client.post("/ui/api/codes", content=body, headers=head)

    pages.url = "http://127.0.0.1:80/"
    here = (await code('{"origin": "http://localhost:80"}')).json()
    assert (here["link"], here["qr"]) == (f"http://127.0.0.1:80/ui/#code={here['code']}", None)
    there = (await code('{"origin": "https://host.test:8443"}')).json()
    assert there["link"] == f"https://host.test:8443/ui/#code={there['code']}"
    assert read_qr([list(map(int, row)) for row in there["qr"]]) == there["link"]
    pages.url = "https://public.test/"
    assert (await code("")).json()["link"].startswith("https://public.test/ui/#code=")
    for bad in ('{"origin": "javascript:alert(1)"}', '{"origin": 1}', '{"origin": "https://a.test/x"}', "[]", "{"):
        assert (await code(bad)).status_code == 400, bad
    assert (await code('{"origin": "https://' + "a" * 200 + '.test"}')).status_code == 400


async def test_below_a_path_links_and_the_way_to_the_page_have_it(
    client: httpx2.AsyncClient, pages: WorkbenchPages
) -> None:
    pages.path, pages.url = "/team/agent", "https://host.test/team/agent/"
    assert (await client.get("/")).headers["location"] == "/team/agent/ui/"
    head = {"Authorization": "Bearer owner-token"}
    for origin, before in (("https://phone.test", "https://phone.test"), ("", "https://host.test")):
        made = await client.post("/ui/api/codes", json={"origin": origin}, headers=head)
        assert made.json()["link"].startswith(f"{before}/team/agent/ui/#code=")


async def test_a_removed_device_takes_with_it_what_it_let_in_and_its_codes(
    client: httpx2.AsyncClient, pages: WorkbenchPages
) -> None:
    async def paired(by: str) -> tuple[str, str]:
        """Let a device in by the code of another one; return its id and its token."""
        made = await client.post("/ui/api/codes", headers={"Authorization": f"Bearer {by}"})
        body = {"code": made.json()["code"], "device": f"by {by[-4:]}"}
        found = (await client.post("/ui/api/pair", json=body)).json()
        return found["id"], found["token"]

    async def devices(token: str) -> dict[str, Any]:
        listed = (await client.get("/ui/api/devices", headers={"Authorization": f"Bearer {token}"})).json()
        return {device["id"]: device for device in listed["devices"]}

    owner, other = await pair(client, pages), await pair(client, pages)
    first, first_token = await paired(owner)
    second, second_token = await paired(first_token)
    third, third_token = await paired(second_token)
    beside, beside_token = await paired(other)
    open_code = (await client.post("/ui/api/codes", headers={"Authorization": f"Bearer {third_token}"})).json()["code"]
    known = await devices(owner)
    assert known[second]["pairedBy"] == first
    assert known[first]["pairs"] == [second, third]
    assert known[beside]["pairs"] == []
    removed = await client.delete(f"/ui/api/devices/{first}", headers={"Authorization": f"Bearer {owner}"})
    assert removed.json() == {"revoked": first, "with": [second, third]}
    for token in (first_token, second_token, third_token):
        assert (await client.get("/ui/api/session", headers={"Authorization": f"Bearer {token}"})).status_code == 401
    late = await client.post("/ui/api/pair", json={"code": open_code, "device": "late"})
    assert (late.status_code, "was removed" in late.json()["error"]) == (403, True)
    assert beside in await devices(beside_token)


async def test_the_use_of_a_device_is_kept_once_an_hour(client: httpx2.AsyncClient, pages: WorkbenchPages) -> None:
    token = await pair(client, pages)
    now = [1_000_000.0]
    pages.now = lambda: now[0]
    headers = {"Authorization": f"Bearer {token}"}

    async def used() -> float | None:
        (device,) = (await client.get("/ui/api/devices", headers=headers)).json()["devices"]
        return device["used"]

    assert await used() is None
    for passed, expected in ((0.0, 0.0), (3_599.0, 0.0), (1.0, 3_600.0), (10.0, 3_600.0)):
        now[0] += passed
        await client.get("/ui/api/session", headers=headers)
        assert await used() == 1_000_000.0 + expected


class OneView:
    """A view of an agent that has one tool and refuses users."""

    async def tools(self, user: str, workspace: str) -> dict[str, Any]:
        return {"tools": [{"name": f"{user}@{workspace}", "description": ""}]}

    async def trust(self, user: str, workspace: str) -> dict[str, Any] | None:
        if user:
            raise NotShownError("not yours")
        return {"items": []} if workspace == "/asked" else None

    async def use(self, user: str) -> dict[str, Any]:
        return {"user": user}

    async def prices(self, user: str, models: Sequence[str]) -> dict[str, Any]:
        return dict.fromkeys(models, user)

    async def decide_trust(self, user: str, workspace: str, choice: str, digests: Collection[str]) -> None:
        if user:
            raise NotShownError("not yours")
        if choice == "full":
            raise IsthmusError("the disk is full")
        if workspace != "/asked":
            raise ChangedQuestionError("nothing is asked")

    async def settings(self, user: str) -> dict[str, Any]:
        if user:
            raise NotShownError("not yours")
        return {"settings": []}


async def test_only_the_owner_is_asked_about_a_folder_and_answers(
    client: httpx2.AsyncClient, pages: WorkbenchPages
) -> None:
    owner = {"Authorization": f"Bearer {await pair(client, pages)}"}
    alice = {"Authorization": f"Bearer {await pair(client, pages, 'alice')}"}
    answer: dict[str, Any] = {"workspace": "/asked", "choice": "trust-folder", "items": []}
    assert (await client.get("/ui/api/trust?workspace=/asked", headers=owner)).status_code == 404
    assert (await client.post("/ui/api/trust", json=answer, headers=owner)).status_code == 404
    pages.view = OneView()
    asked = (await client.get("/ui/api/trust?workspace=/asked", headers=owner)).json()
    assert asked == {"workspace": "/asked", "question": {"items": []}}
    assert (await client.get("/ui/api/trust?workspace=/other", headers=owner)).json()["question"] is None
    for sender, status in ((owner, 200), (alice, 403), ({}, 401)):
        assert (await client.get("/ui/api/trust?workspace=/asked", headers=sender)).status_code == status
        assert (await client.post("/ui/api/trust", json=answer, headers=sender)).status_code == status
    wrong_ones: list[tuple[Any, int]] = [
        ({**answer, "workspace": "/other"}, 409),
        ({**answer, "choice": "full"}, 500),
        ({**answer, "workspace": "asked"}, 400),
        ({**answer, "items": "all"}, 400),
        ({**answer, "items": [1]}, 400),
        ({"workspace": "/asked"}, 400),
        ([], 400),
    ]
    for wrong, status in wrong_ones:
        assert (await client.post("/ui/api/trust", json=wrong, headers=owner)).status_code == status, wrong
    assert (await client.get("/ui/api/trust", headers=owner)).status_code == 400


async def test_tools_and_settings_are_those_of_the_sender(client: httpx2.AsyncClient, pages: WorkbenchPages) -> None:
    owner = {"Authorization": f"Bearer {await pair(client, pages)}"}
    alice = {"Authorization": f"Bearer {await pair(client, pages, 'alice')}"}
    assert (await client.get("/ui/api/tools", headers=owner)).status_code == 404
    assert (await client.get("/ui/api/settings", headers=owner)).status_code == 404
    pages.view = OneView()
    assert (await client.get("/ui/api/tools")).status_code == 401
    shown = (await client.get("/ui/api/tools?workspace=/work", headers=alice)).json()
    assert (shown["workspace"], shown["tools"][0]["name"]) == ("/work", "alice@/work")
    assert (await client.get("/ui/api/tools", headers=owner)).json()["tools"][0]["name"] == "@/work"
    assert (await client.get("/ui/api/tools?workspace=/etc", headers=owner)).status_code == 400
    assert (await client.get("/ui/api/settings", headers=owner)).json() == {"settings": []}
    refused = await client.get("/ui/api/settings", headers=alice)
    assert (refused.status_code, refused.json()["error"]) == (403, "not yours")


async def test_only_a_device_subscribes_and_its_subscription_ends_with_it(
    client: httpx2.AsyncClient, pages: WorkbenchPages, tmp_path: Path
) -> None:
    pages.notifications = Notifications(pages.users, PushSender(PushRule.of(["127.0.0.1"])), tmp_path)
    owner = {"Authorization": "Bearer owner-token"}
    assert (await client.get("/ui/api/push", headers=owner)).json()["key"] is None
    keys: dict[str, object] = {**BrowserKeys().subscription("http://127.0.0.1:9/send")}
    assert (await client.put("/ui/api/push", json=keys, headers=owner)).status_code == 403
    head = {"Authorization": f"Bearer {await pair(client, pages)}"}
    state = (await client.get("/ui/api/push", headers=head)).json()
    assert (len(state["key"]), state["reason"], state["endpoint"], state["answers"]) == (87, None, None, False)
    assert (await client.post("/ui/api/push", json={"answers": True}, headers=head)).status_code == 409
    wrong: list[dict[str, object]] = [
        {},
        {**keys, "auth": 1},
        {**keys, "auth": "AAAA"},
        {**keys, "endpoint": "https://10.0.0.1/"},
        {**keys, "language": "tlh"},
        {**keys, "answers": 1},
    ]
    for bad in wrong:
        assert (await client.put("/ui/api/push", json=bad, headers=head)).status_code == 400, bad
    told = (await client.put("/ui/api/push", json={**keys, "language": "zh-Hant"}, headers=head)).json()
    assert told == {"endpoint": keys["endpoint"], "answers": False}
    assert (await client.post("/ui/api/push", json={"answers": "yes"}, headers=head)).status_code == 400
    assert (await client.post("/ui/api/push", json={"answers": True}, headers=head)).json() == {"answers": True}
    await client.put("/ui/api/push", json=keys, headers=head)  # again, as browsers do when an address changes
    state = (await client.get("/ui/api/push", headers=head)).json()
    assert (state["endpoint"], state["answers"]) == (keys["endpoint"], True)
    assert (await client.delete("/ui/api/push", headers=head)).json() == {"endpoint": None}
    await client.put("/ui/api/push", json=keys, headers=head)
    assert not (await client.get("/ui/api/push", headers=head)).json()["answers"]
    device = (await client.get("/ui/api/devices", headers=head)).json()["this"]
    await client.delete(f"/ui/api/devices/{device}", headers=head)
    assert str(keys["endpoint"]) not in (tmp_path / "users.json").read_text("utf-8")


async def test_an_answer_by_a_notification_needs_its_token_alone(
    client: httpx2.AsyncClient, pages: WorkbenchPages, tmp_path: Path
) -> None:
    for body in ("{}", '{"token": ""}', '{"token": 1}', '{"token": "%s"}' % ("x" * 201), "[]", "{"):
        assert (await client.post("/ui/api/push/answer", content=body)).status_code == 400, body
    assert (await client.post("/ui/api/push/answer", json={"token": "t"})).status_code == 503
    told, agent = SentFile(tmp_path), MemoryAgent(lambda _: [])
    pages.answers = PushedAnswers(told, pages.users, KnownTasks(), lambda _: agent, pages.now)
    refused = await client.post("/ui/api/push/answer", json={"token": "t"})
    assert (refused.status_code, "access-control-allow-origin" in refused.headers) == (403, False)
    assert refused.json()["error"] == "this notification answers nothing any more; open the question"
    foreign = {"Origin": "https://evil.example"}
    assert "evil.example" in (await client.post("/ui/api/push/answer", json={"token": "t"}, headers=foreign)).text
    assert (await client.get("/ui/api/push/answer")).status_code == 404
    large = await client.post("/ui/api/push/answer", content=b" " * 20_000)
    assert large.status_code == 413
    outcome = AnswerRecord("Laptop", 7.0)
    question = SentQuestion("", "task", "call", "digest", 0.0, outcome=outcome)
    await pair(client, pages)
    [entry] = pages.users.table().entries.values()
    push = BrowserPush("https://push.example", "", "", "", answers=True)
    pages.users.change(lambda table: (table.with_push(entry.id, push), None))
    tokens = (AnswerToken(token_digest("t"), entry.id, "allow", "yes", pages.now() + 60),)
    told.change(lambda table: (table.with_question(replace(question, tokens=tokens), 0.0), None))
    ended = await client.post("/ui/api/push/answer", json={"token": "t"})
    assert (ended.status_code, ended.json()["outcome"]) == (409, {"by": "Laptop", "at": 7.0, "act": None, "own": False})


async def test_changes_are_refused_without_a_token_and_end_with_it(pages: WorkbenchPages, tmp_path: Path) -> None:
    journal = await SqliteJournal.open(tmp_path / "journal.db")
    pages.changes = ChangeFeed(journal)
    access = UserAccess(pages.users.table)
    app = application(MemoryAgent(lambda _: []), ServerOptions("owner-token"), access=access, pages=pages)
    try:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:80") as client:
            assert (await client.get("/ui/api/changes")).status_code == 401
            token = await pair(client, pages)
            head = {"Authorization": f"Bearer {token}"}
            for bad in ("x", "-1", "1" * 16):
                answer = await client.get("/ui/api/changes", headers={**head, "Last-Event-ID": bad})
                assert answer.status_code == 400, bad
            following = asyncio.ensure_future(client.get("/ui/api/changes", headers=head))
            async with asyncio.timeout(10):
                while not journal.changes.is_watched:
                    await asyncio.sleep(0)
                entry = next(iter(pages.users.table().entries))
                pages.users.change(lambda table: (table.revoked(entry)[0], None))
                app.close_invalid_streams()
                ended = await following
            assert ended.headers["content-type"].startswith("text/event-stream")
            assert ended.headers["content-security-policy"]
            assert re.fullmatch("(: changes\n)?: its token is no longer valid\n", ended.text)
            app.close_streams()
            async with asyncio.timeout(10):
                stopped = await client.get("/ui/api/changes", headers={"Authorization": "Bearer owner-token"})
            assert stopped.text == ": the server is stopping\n"
    finally:
        await journal.aclose()


async def test_without_a_journal_there_are_no_changes(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/ui/api/changes", headers={"Authorization": "Bearer owner-token"})
    assert answer.status_code == 404


class AwayAgent(CommandingAgent):
    @override
    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        raise JournalUnavailable("the database is away")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "changes", None),
        ("GET", "sessions?words=quay", None),
        ("POST", "complete", {"line": "/he", "contextId": "c1"}),
    ],
)
async def test_while_the_database_is_away_the_api_says_when_to_ask_again(
    client: httpx2.AsyncClient,
    pages: WorkbenchPages,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    path: str,
    body: object,
) -> None:
    journal = await SqliteJournal.open(tmp_path / "journal.sqlite")

    async def away(*_: object) -> int:
        raise JournalUnavailable("the database is away")

    monkeypatch.setattr(journal, "version", away)
    monkeypatch.setattr(journal.sessions, "list", away)
    pages.changes, pages.sessions = ChangeFeed(journal), SessionsApi(journal, "demo")
    pages.agent_of = lambda _: AwayAgent(lambda _: [])
    head = {"Authorization": f"Bearer {await pair(client, pages)}"}
    answer = await client.request(method, f"/ui/api/{path}", headers=head, json=body)
    assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5")
    assert answer.json() == {"error": "the database is away", "code": "UNAVAILABLE"}
    assert (await client.get("/ui/api/session", headers=head)).status_code == 200
    await journal.aclose()
