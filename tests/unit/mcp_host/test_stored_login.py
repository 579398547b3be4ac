"""A stored login that another program renews or replaces meanwhile: no token that is current is renewed or deleted."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind, Origin, ServerConfig
from isthmus.mcp_host.connection.errors import NeedsLoginError
from isthmus.mcp_host.oauth.http import Answer
from isthmus.mcp_host.oauth.login_store import LoginStore
from isthmus.mcp_host.oauth.messages import Endpoints, OAuthClient
from isthmus.mcp_host.oauth.store import Registration, StoredToken
from isthmus.mcp_host.oauth.stored_login import StoredLogin

if TYPE_CHECKING:
    from collections.abc import Callable

    from isthmus.mcp_host.oauth.http import OAuthHttp

pytestmark = pytest.mark.anyio

URL = "https://mcp.example/"
TOKEN_URL = "https://login.example/token"
CONFIG = ServerConfig("one", Origin.USER, HttpEndpoint(URL, HttpKind.STREAMABLE, {}))


class _TokenEndpoint:
    """A token endpoint that counts the renewals; ``before`` happens while it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.refuses = False
        self.before: Callable[[], Any] | None = None

    async def post(self, *_: object, **__: object) -> Answer:
        self.asked += 1
        if self.before is not None:
            await self.before()
        if self.refuses:
            return Answer(400, {"error": "invalid_grant"})
        return Answer(200, {"access_token": f"renewed-{self.asked}", "token_type": "Bearer", "expires_in": 3600})


def token(access: str, seconds: float = 3600.0) -> StoredToken:
    """Return a token that expires in so many seconds, and can be renewed."""
    endpoints = Endpoints("https://login.example/authorize", TOKEN_URL)
    registration = Registration(OAuthClient("client"), None, "http://localhost/")
    return StoredToken(
        *(access, "refresh", time.time() + seconds), server_url=URL, registration=registration, endpoints=endpoints
    )


@pytest.fixture
def store(tmp_path: Path) -> LoginStore:
    return LoginStore(tmp_path)


@pytest.fixture
def endpoint() -> _TokenEndpoint:
    return _TokenEndpoint()


@pytest.fixture
def login(store: LoginStore, endpoint: _TokenEndpoint) -> StoredLogin:
    return StoredLogin(CONFIG, URL, store, cast("OAuthHttp", endpoint))


async def kept(store: LoginStore) -> str | None:
    found = await store.find(CONFIG, URL)
    return None if found is None else found.access_token


async def test_of_two_requests_with_a_refused_token_the_second_uses_the_renewed_one(
    store: LoginStore, login: StoredLogin, endpoint: _TokenEndpoint
) -> None:
    await store.save(CONFIG, token("old"))
    assert await login.current() == "old"
    assert await login.renewed("old") == "renewed-1"
    assert await login.renewed("old") == "renewed-1"
    assert endpoint.asked == 1
    assert await login.renewed("renewed-1") == "renewed-2"


async def test_a_token_that_another_program_renewed_is_used_and_not_renewed_again(
    store: LoginStore, login: StoredLogin, endpoint: _TokenEndpoint
) -> None:
    """The refresh token of the old one may be usable once only."""
    await store.save(CONFIG, token("old", 5))
    assert await login.current() == "renewed-1"
    await store.save(CONFIG, token("of another program"))
    assert await login.renewed("renewed-1") == "of another program"
    assert endpoint.asked == 1


async def test_a_login_that_came_while_the_old_one_was_refused_is_not_deleted(
    store: LoginStore, login: StoredLogin, endpoint: _TokenEndpoint
) -> None:
    await store.save(CONFIG, token("old", 0))
    endpoint.refuses, endpoint.before = True, lambda: store.save(CONFIG, token("new"))
    assert await login.current() == "new"
    assert await kept(store) == "new"
    endpoint.before = None
    with pytest.raises(NeedsLoginError):
        await login.renewed("new")
    assert await kept(store) is None


async def test_a_login_that_came_since_its_former_token_was_sent_is_not_deleted(
    store: LoginStore, login: StoredLogin
) -> None:
    await store.save(CONFIG, token("new"))
    with pytest.raises(NeedsLoginError):
        await login.refused("old")
    assert await kept(store) == "new"
    with pytest.raises(NeedsLoginError):
        await login.refused("new")
    assert await kept(store) is None
