"""Reviews of running companions in the page of another server: over the control channel, with the rules of devices."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.server.application import application
from isthmus.a2a.server.users.auth import UserAccess
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.control import lineage
from isthmus.ide.control.control import ControlServer
from isthmus.ide.control.questions import Answered
from isthmus.ide.editor import Consent
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.programs.companion.page import WebEditor
from isthmus.programs.serve import running_companions
from isthmus.programs.serve.running_companions import RunningCompanions
from isthmus.web.companions.reviews import CompanionRefusedError, NoSuchCompanionError, ReviewsApi
from isthmus.web.http.bundle import Bundle
from isthmus.web.pages import WorkbenchPages
from support.companion_recorder import Recorder
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


@pytest.fixture
def client() -> Recorder:
    return Recorder()


@pytest.fixture
def companion(workspace: Path, tmp_path: Path, client: Recorder) -> Companion:
    found = Companion(HeadlessEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))
    found.attach(client)
    return found


@asynccontextmanager
async def announced(companion: Companion, folder: Path, *, allows: bool = True) -> AsyncGenerator[ControlServer]:
    """Run the control channel of a companion."""
    server = ControlServer(companion, folder, allow_agent_accept=allows)
    await server.start()
    server.announce(("/work",), (1,), {}, "")
    try:
        yield server
    finally:
        await server.stop()
        await server.cut_off()


@pytest.fixture
async def pages(tmp_path: Path, companion: Companion) -> AsyncIterator[WorkbenchPages]:
    async with announced(companion, tmp_path / "runtime"):
        api = ReviewsApi(RunningCompanions(tmp_path / "runtime"))
        yield WorkbenchPages(Bundle({}), UsersFile(tmp_path / "users.json"), "Isthmus", reviews=api)


@pytest.fixture
async def http(pages: WorkbenchPages) -> AsyncIterator[httpx2.AsyncClient]:
    access = UserAccess(pages.users.table)
    app = application(MemoryAgent(lambda _: []), ServerOptions("owner-token"), access=access, pages=pages)
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:80/ui/api/") as found:
        yield found


async def paired(http: httpx2.AsyncClient, pages: WorkbenchPages, user: str = "") -> dict[str, str]:
    code = pages.codes.short(user, pages.clock()).text
    token = (await http.post("pair", json={"code": code, "device": "A phone"})).json()["token"]
    return {"Authorization": f"Bearer {token}"}


async def test_a_device_accepts_a_review_and_the_next_device_learns_of_it(
    http: httpx2.AsyncClient, pages: WorkbenchPages, companion: Companion, client: Recorder, workspace: Path
) -> None:
    head = await paired(http, pages)
    assert (await http.get("session", headers=head)).json()["reviews"]
    await companion.open_diff(client, str(workspace / "a.py"), "new\n")
    (found,) = (await http.get("reviews", headers=head)).json()["companions"]
    (listed,) = found["reviews"]
    assert listed["id"].startswith(f"{os.getpid()}.")
    path = f"reviews/{listed['id']}"
    seen = (await http.get(path, headers=head)).json()
    assert (seen["id"], seen["old"], seen["new"]) == (listed["id"], None, "new\n")
    stale = await http.post(path, headers=head, json={"decision": "accept", "state": "of another text"})
    assert (stale.status_code, stale.json()["changed"]) == (409, True)
    accepted = await http.post(path, headers=head, json={"decision": "accept", "state": seen["state"]})
    assert (accepted.status_code, accepted.json()["outcome"]["by"]) == (200, "A phone")
    assert len(client.decisions) == 1
    late = await http.post(path, headers=head, json={"decision": "reject"})
    assert (late.status_code, late.json()["outcome"]["by"]) == (409, "A phone")
    assert (await http.get(path, headers=head)).status_code == 409
    (found,) = (await http.get("reviews", headers=head)).json()["companions"]
    assert [ended["id"] for ended in found["ended"]] == [listed["id"]]


async def test_a_phone_answers_a_permission_once_with_words_for_the_agent(
    http: httpx2.AsyncClient, pages: WorkbenchPages, companion: Companion
) -> None:
    head = await paired(http, pages)
    still_asks = [True]
    asking = companion.asking.ask_permission("An agent", "May I?", "make", lambda: not still_asks[0], 60.0)
    asked = asyncio.create_task(asking)
    await companion.asking.wait(30)
    (found,) = (await http.get("reviews", headers=head)).json()["companions"]
    (listed,) = found["questions"]
    assert (listed["title"], listed["text"], listed["permission"]) == ("May I?", "make", True)
    path = f"questions/{listed['id']}"
    for refused, status in (({"answer": "session"}, 403), ({"answer": "no", "reason": 1}, 400)):
        assert (await http.post(path, headers=head, json=refused)).status_code == status
    answered = await http.post(path, headers=head, json={"answer": "no", "reason": "use make"})
    assert (answered.status_code, answered.json()["outcome"]["by"]) == (200, "A phone")
    ended = await asyncio.wait_for(asked, 30)
    assert ended.state == Answered(Consent.NO, "use make")
    late = await http.post(path, headers=head, json={"answer": "yes"})
    assert (late.status_code, late.json()["outcome"]["decision"]) == (409, "no")
    again = asyncio.create_task(companion.asking.ask_permission("x", "y", "z", lambda: not still_asks[0], 60.0))
    (question,) = await companion.asking.wait(30)
    still_asks[0] = False  # answered in the terminal, which nobody has noticed yet
    late = await http.post(f"questions/{os.getpid()}.{question.id}", headers=head, json={"answer": "yes"})
    assert (late.status_code, late.json()["outcome"]["decision"]) == (409, "closed")
    assert not (await asyncio.wait_for(again, 30)).is_allowed


async def test_reviews_are_the_owners_and_only_devices_answer(
    http: httpx2.AsyncClient, pages: WorkbenchPages, companion: Companion, client: Recorder, workspace: Path
) -> None:
    review = await companion.open_diff(client, str(workspace / "a.py"), "new\n")
    path, reject = f"reviews/{os.getpid()}.{review.id}", {"decision": "reject"}
    assert (await http.get("reviews")).status_code == 401
    assert (await http.post(path, json=reject)).status_code == 401
    other = await paired(http, pages, "alice")
    assert not (await http.get("session", headers=other)).json()["reviews"]
    assert (await http.get("reviews", headers=other)).status_code == 403
    assert (await http.post(path, headers=other, json=reject)).status_code == 403
    from_file = {"Authorization": "Bearer owner-token"}
    refused = await http.post(path, headers=from_file, json=reject)
    assert (refused.status_code, "token of a device" in refused.json()["error"]) == (403, True)
    foreign = {**await paired(http, pages), "Origin": "http://evil.test"}
    assert (await http.post(path, headers=foreign, json=reject)).status_code == 403
    assert client.decisions == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "reviews/{id}", "{", 400),
        ("POST", "reviews/{id}", "[]", 400),
        ("POST", "reviews/{id}", '{"decision": "accept"}', 400),
        ("POST", "reviews/{id}", '{"decision": "accept", "state": "", "content": 1}', 400),
        ("POST", "questions/{id}", '{"answer": true}', 400),
        ("POST", "questions/{id}", '{"answer": "no", "reason": []}', 400),
        ("POST", "reviews", "{}", 404),
        ("POST", "reviews/1", "{}", 404),
        ("GET", "questions", "", 404),
        ("DELETE", "reviews/{id}", "", 404),
        ("GET", "reviews/0.x", "", 404),
        ("POST", "reviews/0.x", '{"decision": "reject"}', 404),
        ("GET", "files", "", 404),
        ("GET", "files/0", "", 404),
        ("GET", "files/{pid}", "", 403),
        ("DELETE", "files/{pid}", "", 405),
        ("POST", "files/{pid}", "[]", 400),
        ("POST", "files/{pid}", '{"do": "view"}', 400),
        ("POST", "files/{pid}", '{"do": "view", "path": "/a", "focus": 1}', 400),
        ("POST", "files/{pid}", '{"do": "delete", "path": "/a"}', 400),
        ("POST", "files/{pid}", '{"do": "select", "path": "/a", "state": "", "selection": [0, 0, 0]}', 400),
        ("POST", "files/{pid}", '{"do": "mention", "path": "/a", "lines": [-1, 2]}', 400),
        ("POST", "files/{pid}", '{"do": "view", "path": "/a"}', 403),
    ],
)
async def test_bad_requests_are_refused(
    http: httpx2.AsyncClient, pages: WorkbenchPages, method: str, path: str, body: str, status: int
) -> None:
    head = await paired(http, pages)
    path = path.format(id=f"{os.getpid()}.x", pid=os.getpid())
    answer = await http.request(method, path, headers=head, content=body.replace("{", "{").replace("}}", "}"))
    assert (answer.status_code, bool(answer.json()["error"])) == (status, True)


async def test_files_of_a_page_are_shown_to_devices_of_the_owner_alone(tmp_path: Path, workspace: Path) -> None:
    (workspace / "a.py").write_text("text")
    companion = Companion(WebEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))
    api = ReviewsApi(RunningCompanions(tmp_path / "runtime"))
    pages = WorkbenchPages(Bundle({}), UsersFile(tmp_path / "users.json"), "Isthmus", reviews=api)
    access = UserAccess(pages.users.table)
    app = application(MemoryAgent(lambda _: []), ServerOptions("owner-token"), access=access, pages=pages)
    transport, url = httpx2.ASGITransport(app), "http://127.0.0.1:80/ui/api/"
    async with (
        announced(companion, tmp_path / "runtime"),
        httpx2.AsyncClient(transport=transport, base_url=url) as http,
    ):
        head, path = await paired(http, pages), f"files/{os.getpid()}"
        found = (await http.get(f"{path}?words=A.PY", headers=head)).json()
        assert found == {"files": [{"path": str(workspace / "a.py"), "name": "a.py"}], "more": False}
        view = {"do": "view", "path": str(workspace / "a.py")}
        shown = (await http.post(path, headers=head, json=view)).json()
        assert shown["text"] == "text"
        select = {**view, "do": "select", "state": shown["state"], "selection": [0, 0, 0, 4]}
        assert (await http.post(path, headers=head, json=select)).json() == {"selection": [0, 0, 0, 4]}
        assert (await http.post(path, headers=head, json={**select, "state": "of another text"})).status_code == 409
        selected = (await companion.context()).files[0].selection
        assert selected is not None
        assert selected.text == "text"
        assert not (await http.post(path, headers=head, json={**view, "do": "mention"})).json()["delivered"]
        (waiting,) = (await http.get("reviews", headers=head)).json()["companions"]
        assert [file["path"] for file in waiting["files"]] == [str(workspace / "a.py")]
        outside = await http.post(path, headers=head, json={**view, "path": "/etc/passwd"})
        assert (outside.status_code, "outside the workspace" in outside.json()["error"]) == (403, True)
        for refused in ({"Authorization": "Bearer owner-token"}, await paired(http, pages, "alice")):
            assert (await http.get(path, headers=refused)).status_code == 403
            assert (await http.post(path, headers=refused, json=view)).status_code == 403
        foreign = {**head, "Origin": "http://evil.test"}
        assert (await http.post(path, headers=foreign, json=view)).status_code == 403


@pytest.fixture
async def following(companion: Companion) -> AsyncIterator[None]:
    """The companion records what is written, until it is closed."""
    task = asyncio.create_task(companion.written.run())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.usefixtures("following")
async def test_what_agents_wrote_is_shown_to_devices_of_the_owner_alone(
    http: httpx2.AsyncClient, pages: WorkbenchPages
) -> None:
    written = f"written/{os.getpid()}"
    device = await paired(http, pages)
    (found,) = (await http.get("reviews", headers=device)).json()["companions"]
    assert set(found["written"]) == {"files", "turns", "agents", "since", "count"}
    assert (await http.get(written, headers=device)).json()["turns"] == []
    refused = await http.post(written, headers=device, json={"do": "keep"})
    assert (refused.status_code, "nothing was written" in refused.json()["error"]) == (403, True)
    owner = {"Authorization": "Bearer owner-token"}
    looked, kept = await http.get(written, headers=owner), await http.post(written, headers=owner, json={"do": "keep"})
    for answer in (looked, kept):
        assert (answer.status_code, "only a paired browser" in answer.json()["error"]) == (403, True)
    other = await paired(http, pages, "bob")
    assert (await http.get(written, headers=other)).status_code == 403


async def test_reviews_of_the_servers_own_agent_are_left_out(
    companion: Companion, tmp_path: Path, workspace: Path
) -> None:
    own = Recorder("own", pid=os.getpid())
    companion.attach(own)
    await companion.open_diff(own, str(workspace / "a.py"), "new\n")
    async with announced(companion, tmp_path / "runtime"):
        (found,) = await RunningCompanions(tmp_path / "runtime").waiting()
    assert found["reviews"] == []
    with pytest.raises(NoSuchCompanionError):
        await RunningCompanions(tmp_path / "runtime").ask(found["id"], "waiting", {})


async def test_changes_at_companions_are_told_and_so_are_companions_that_come_and_go(
    companion: Companion, client: Recorder, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_companions, "APPEAR_SECONDS", 0.02)
    running = RunningCompanions(tmp_path / "runtime")
    async with aclosing(running.changes()) as changes, asyncio.timeout(30):
        await anext(changes)
        assert await running.waiting() == []
        async with announced(companion, tmp_path / "runtime"):
            while not await running.waiting():
                await anext(changes)
            await companion.open_diff(client, str(workspace / "a.py"), "new\n")
            while not (await running.waiting())[0]["reviews"]:
                await anext(changes)
            await companion.detach(client.id)
            while (await running.waiting())[0]["agents"]:
                await anext(changes)
        while await running.waiting():
            await anext(changes)


async def test_a_server_that_the_user_may_not_have_started_is_refused(
    companion: Companion, client: Recorder, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doubt(pid: int, agents: Iterable[int]) -> str:
        return "it has no terminal"

    monkeypatch.setattr(lineage, "doubt_about", doubt)
    review = await companion.open_diff(client, str(workspace / "a.py"), "new\n")
    wanted = {"id": review.id, "decision": "reject", "by": "me"}
    async with announced(companion, tmp_path / "runtime", allows=False):
        running = RunningCompanions(tmp_path / "runtime")
        with pytest.raises(CompanionRefusedError, match="it has no terminal"):
            await running.ask(str(os.getpid()), "decide", wanted)
        assert len((await running.waiting())[0]["reviews"]) == 1
    assert client.decisions == []


async def test_a_browser_that_an_agent_started_is_refused(
    companion: Companion, client: Recorder, tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_doubt(pid: int, agents: Iterable[int]) -> None:
        """Ignore the terminal: these tests may run in one or without one."""

    monkeypatch.setattr(lineage, "doubt_about", no_doubt)
    review = await companion.open_diff(client, str(workspace / "a.py"), "new\n")
    wanted = {"id": review.id, "decision": "reject", "by": "me"}
    program, environment = [sys.executable, "-ISc", "input()"], {**os.environ, "GEMINI_CLI": "1"}
    async with announced(companion, tmp_path / "runtime", allows=False):
        running = RunningCompanions(tmp_path / "runtime")
        with subprocess.Popen(program, stdin=subprocess.PIPE, env=environment) as browser:
            for command, arguments in (("decide", wanted), ("page_written_keep", {}), ("page_written_undo", {})):
                with pytest.raises(CompanionRefusedError, match=r"started by an agent .*GEMINI_CLI"):
                    await running.ask(str(os.getpid()), command, {**arguments, "browser": browser.pid})
            browser.kill()
        assert client.decisions == []
        await running.ask(str(os.getpid()), "decide", wanted)
    assert len(client.decisions) == 1
