"""Users of an OpenID Connect issuer at a server that has users with tokens, too, over real sockets."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.oidc.claims import ClaimNames
from isthmus.a2a.oidc.issuer import Issuer
from isthmus.a2a.oidc.users import IssuerUsers
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.engine.port.agents import Agent
from isthmus.web.http.bundle import Bundle
from isthmus.web.pages import WorkbenchPages
from support.a2a_serving import EXTENSION, RawClient, prompt, rpc
from support.a2a_users import Users, users_of
from support.agents import EchoAgent, WaitingAgent
from support.oidc_issuer import AUDIENCE, OidcIssuer, oidc_issuer

pytestmark = pytest.mark.anyio


@dataclass(slots=True)
class SignedIn:
    """A server, its users with tokens, and the issuer of the others."""

    users: Users
    issuer: OidcIssuer

    async def client(self, name: str) -> RawClient:
        """Return a client of a user of the issuer."""
        return await self.users.client_with(self.issuer.token(sub=name))


@asynccontextmanager
async def signed_in(workspace: Path, agent: Agent, **more: Any) -> AsyncGenerator[SignedIn]:
    issuer = oidc_issuer()
    with issuer.server:
        issued = IssuerUsers(Issuer(issuer.url), AUDIENCE, ClaimNames(tier="plan"))
        async with users_of(workspace, agent, identify_issued=issued.identify, **more) as users:
            yield SignedIn(users, issuer)


async def test_a_user_of_the_issuer_has_tasks_that_nobody_else_sees(workspace: Path) -> None:
    async with signed_in(workspace, EchoAgent()) as served:
        alice, bob = await served.client("alice"), await served.client("bob")
        task = await alice.result("message/send", prompt("go", workspace))
        assert task["status"]["state"] == "completed"
        namesake = await served.users.client("alice")
        for stranger in (bob, namesake, served.users.local):
            assert (await stranger.error("tasks/get", {"id": task["id"]}))["code"] == -32001
        again = await served.users.client_with(served.issuer.token("ec", "ES256", sub="alice"))
        assert (await again.result("tasks/get", {"id": task["id"]}))["id"] == task["id"]


async def test_the_tier_of_a_token_is_in_the_card_of_its_user(workspace: Path) -> None:
    async with signed_in(workspace, EchoAgent()) as served:
        client = await served.users.client_with(served.issuer.token(sub="alice", plan="gold"))
        card = await client.result("agent/getAuthenticatedExtendedCard", {})
        parameters = card["capabilities"]["extensions"][0]["params"]
        assert parameters["user"] == f"{served.issuer.url}#sub=alice"
        assert parameters["user_tier"] == "gold"


async def test_a_refused_token_is_answered_with_the_reason_and_other_tokens_as_before(workspace: Path) -> None:
    async with signed_in(workspace, EchoAgent()) as served:
        http, url = served.users.local.http, served.users.local.url
        body = rpc("message/send", prompt("go", workspace))

        async def posted(token: str) -> tuple[int, str, str]:
            headers = {**EXTENSION, "Authorization": f"Bearer {token}"}
            response = await http.post(url, json=body, headers=headers)
            return response.status_code, response.json()["error"], response.headers["www-authenticate"]

        expired = served.issuer.token(exp=int(time.time()) - 3600)
        reason = "the token has expired"
        challenge = f'Bearer error="invalid_token", error_description="{reason}"'
        assert await posted(expired) == (401, reason, challenge)
        forged = served.issuer.forged({"alg": "HS256", "kid": "rsa"}, served.issuer.public_pem())
        assert (await posted(forged))[0] == 401
        status, message, challenge = await posted("isthmus_12345678_unknown")
        assert (status, challenge) == (401, 'Bearer error="invalid_token"')
        assert message.startswith("the token is not this server's token")
        assert await served.users.local.result("isthmus/tasks", {}) == {"tasks": []}
        alice = await served.client("alice")
        assert await alice.result("isthmus/tasks", {}) == {"tasks": []}


async def test_without_the_issuer_a_request_is_refused_as_one_that_can_be_sent_again(workspace: Path) -> None:
    async with signed_in(workspace, EchoAgent()) as served:
        served.issuer.go_away()
        alice = await served.client("alice")
        response = await alice.http.post(alice.url, json=rpc("isthmus/tasks", {}), headers=EXTENSION)
        assert response.status_code == 503
        assert response.headers["retry-after"] == "5"
        assert "www-authenticate" not in response.headers
        assert await served.users.local.result("isthmus/tasks", {}) == {"tasks": []}


async def test_a_stream_ends_when_its_token_has_expired(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = WaitingAgent()
    async with signed_in(workspace, agent) as served:
        alice = await served.client("alice")
        async with alice.opened("message/stream", prompt("go", workspace)) as items:
            first = await anext(items)
            alice.application.close_invalid_streams()
            assert alice.application.open_streams == 1
            later = time.time() + 400
            with monkeypatch.context() as patch:
                patch.setattr(time, "time", lambda: later)
                alice.application.close_invalid_streams()
            async with asyncio.timeout(10):
                rest = [item async for item in items]
        assert "its token has expired" in rest[-1].answer["error"]["message"]
        renewed = await served.client("alice")
        task = await renewed.result("tasks/get", {"id": first.result["id"]})
        assert task["status"]["state"] in ("submitted", "working")
        agent.release.set()


async def test_a_user_of_the_issuer_cannot_pair_a_browser(workspace: Path, tmp_path: Path) -> None:
    pages = WorkbenchPages(Bundle({}), UsersFile(tmp_path / "users.json"), "Isthmus")
    async with signed_in(workspace, EchoAgent(), pages=pages) as served:
        alice = await served.client("alice")
        refused = await alice.http.post(f"{alice.url}ui/api/codes")
        assert refused.status_code == 403
        assert "needs a token of this server" in refused.json()["error"]
        assert (await served.users.local.http.post(f"{alice.url}ui/api/codes")).status_code == 200


async def test_principals_of_tokens_without_open_requests_are_forgotten(workspace: Path) -> None:
    async with signed_in(workspace, EchoAgent()) as served:
        application = served.users.local.application
        for number in range(5):
            token = served.issuer.token(sub="alice", exp=int(time.time()) + 100 + number)
            client = await served.users.client_with(token)
            task = await client.result("message/send", prompt("go", workspace))
            assert task["status"]["state"] == "completed"
            application.close_invalid_streams()
            assert (await client.result("tasks/get", {"id": task["id"]}))["id"] == task["id"]
        application.close_invalid_streams()
        assert application.served_principals == 0
