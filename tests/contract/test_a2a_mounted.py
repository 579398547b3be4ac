"""A hosted agent as part of an application: below a path, with the application's own users."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from isthmus.a2a import Hosting, RemoteAgent, asgi_application
from isthmus.a2a.server.listen import bind
from isthmus.a2a.server.users.auth import RequestHead
from isthmus.agent.session.session import Session
from isthmus.client import PromptMessage
from isthmus.events import AgentEvent, TaskState, TextContent
from isthmus.journal.port.base import JournalError
from support.a2a_serving import prompt, rpc
from support.asgi_server import asgi_server
from support.plain_http import plain_client

pytestmark = pytest.mark.anyio

V1 = {"A2A-Version": "1.0"}


class Echo:
    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        yield TextContent("", f"{session.user}: {session.prompt}")


class Employees(AuthenticationBackend):
    """The application's own authentication."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        _, _, name = conn.headers.get("authorization", "").partition("Bearer employee-")
        return (AuthCredentials(), SimpleUser(name)) if name else None


async def employee(head: RequestHead) -> str | None:
    user = head.scope["user"]
    return user.username if user.is_authenticated else None


async def home(_: Request) -> PlainTextResponse:
    return PlainTextResponse("home")


@asynccontextmanager
async def mounted(folder: Path, path: str = "/tools/agent", **more: Any) -> AsyncGenerator[str]:
    """Serve the application with an agent below one of its paths, and yield its address."""
    hosting = Hosting("Echo", folder=folder / "state", workspace=folder, authenticate=employee, **more)
    hosted = asgi_application(Echo(), hosting)
    application = Starlette(
        routes=[Route("/", home), Mount(path, hosted)],
        middleware=[Middleware(AuthenticationMiddleware, backend=Employees())],
    )
    listener = bind("127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(asgi_server(application, listener))
        stack.push_async_callback(hosted.aclose)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def as_user(name: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer employee-{name}"}


async def test_every_path_works_below_the_mount_and_the_card_says_so(workspace: Path) -> None:
    async with mounted(workspace) as base, plain_client() as http:
        url = f"{base}/tools/agent"
        assert (await http.get(base + "/")).text == "home"
        card = (await http.get(f"{url}/.well-known/agent-card.json")).json()
        assert card["url"] == f"{url}/"
        assert {each["url"] for each in card["supportedInterfaces"]} == {f"{url}/", url}
        assert (await http.get(f"{url}/healthz")).json() == {"status": "ok"}
        answered = await http.post(f"{url}/", json=rpc("message/send", prompt("old")), headers=as_user("ann"))
        assert answered.json()["result"]["artifacts"][0]["parts"] == [{"kind": "text", "text": "ann: old"}]
        message = {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "new"}]}
        answered = await http.post(f"{url}/message:send", json={"message": message}, headers={**as_user("ann"), **V1})
        task = answered.json()["task"]
        assert task["artifacts"][0]["parts"] == [{"text": "ann: new"}]
        found = await http.get(f"{url}/tasks/{task['id']}", headers={**as_user("ann"), **V1})
        assert found.json()["status"]["state"] == "TASK_STATE_COMPLETED"
        found = await http.get(f"{url}/extendedAgentCard", headers={**as_user("ann"), **V1})
        assert {each["url"] for each in found.json()["supportedInterfaces"]} == {f"{url}/", url}


async def test_the_client_finds_an_agent_below_a_path(workspace: Path) -> None:
    async with mounted(workspace) as base:
        agent = await RemoteAgent.connect(f"{base}/tools/agent/", "employee-ann")
        try:
            turn = await agent.prompt(PromptMessage("hello", settings={"workspace_path": str(workspace)}))
            assert [delivery async for delivery in turn.deliveries]
            snapshot = await agent.get(turn.task_id)
            assert snapshot.state is TaskState.COMPLETED
            assert snapshot.history[-1].text == "ann: hello"
        finally:
            await agent.aclose()


async def test_the_applications_users_see_their_own_tasks_alone_and_strangers_none(workspace: Path) -> None:
    async with mounted(workspace) as base, plain_client() as http:
        url = f"{base}/tools/agent/"
        assert (await http.post(url, json=rpc("message/send", prompt("old")))).status_code == 401
        made = await http.post(url, json=rpc("message/send", prompt("old")), headers=as_user("ann"))
        task_id = made.json()["result"]["id"]
        foreign = await http.post(url, json=rpc("tasks/get", {"id": task_id}), headers=as_user("bob"))
        assert foreign.json()["error"]["code"] == -32001
        own = await http.post(url, json=rpc("tasks/get", {"id": task_id}), headers=as_user("ann"))
        assert own.json()["result"]["id"] == task_id
        elsewhere = await http.post(url, json=rpc("message/send", prompt("old", "/")), headers=as_user("ann"))
        assert "not allowed on this server" in elsewhere.json()["error"]["message"]
    assert not (workspace / "state" / "serve-token").exists()


async def test_the_card_tells_the_applications_own_security_schemes(workspace: Path) -> None:
    cookie = {"type": "apiKey", "in": "cookie", "name": "session"}
    async with mounted(workspace, security_schemes={"login": cookie}) as base, plain_client() as http:
        place = f"{base}/tools/agent/.well-known/agent-card.json"
        both, new = (await http.get(place)).json(), (await http.get(place, headers=V1)).json()
    in_v1 = {"apiKeySecurityScheme": {"location": "cookie", "name": "session"}}
    assert both["securitySchemes"] == {"login": {**cookie, **in_v1}}
    assert both["security"] == [{"login": []}]
    assert new["securitySchemes"] == {"login": in_v1}
    assert new["securityRequirements"] == [{"schemes": {"login": {"list": []}}}]


async def test_an_application_opens_its_agents_with_itself_and_closes_them_with_itself(workspace: Path) -> None:
    hosting = Hosting("Echo", folder=workspace / "state", workspace=workspace, token="t")
    body = rpc("message/send", prompt("old"))
    async with asgi_application(Echo(), hosting) as hosted:
        transport = httpx2.ASGITransport(hosted)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            answered = await http.post("/", json=body, headers={"Authorization": "Bearer t"})
    assert answered.json()["result"]["status"]["state"] == "completed"
    assert [file.name for file in (workspace / "state").glob("*-wal")] == []
    with pytest.raises(JournalError, match="Echo"):
        async with asgi_application(Echo(), replace(hosting, name="Other")):
            pass


@pytest.mark.parametrize("cuts_path", [True, False])
async def test_a_proxy_prefix_works_whether_the_server_cuts_it_from_the_path_or_not(
    workspace: Path, cuts_path: bool
) -> None:
    async def anybody(_: RequestHead) -> str | None:
        return ""

    hosted = asgi_application(Echo(), Hosting("Echo", folder=workspace / "state", authenticate=anybody))

    async def behind_proxy(scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"] if cuts_path else f"/a b{scope['path']}"
        raw = scope["raw_path"] if cuts_path else b"/a%20b" + scope["raw_path"]
        await hosted({**scope, "root_path": "/a b", "path": path, "raw_path": raw}, receive, send)

    transport = httpx2.ASGITransport(behind_proxy)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        card = (await http.get("/.well-known/agent-card.json")).json()
        found = await http.get("/tasks/a%2Fb", headers=V1)
    await hosted.aclose()
    assert card["url"] == "http://localhost/a%20b/"
    assert "there is no task a/b" in found.json()["error"]["message"]
    await asyncio.sleep(0)
