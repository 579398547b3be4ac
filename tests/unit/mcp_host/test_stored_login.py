"""A stored login that another program renews or replaces meanwhile: no token that is current is renewed or deleted."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind, Origin, ServerConfig
from isthmus.mcp_host.connection.errors import NeedsLoginError
from isthmus.mcp_host.oauth.http import Answer
from isthmus.mcp_host.oauth.login_store import LoginStore
from isthmus.mcp_host.oauth.messages import Endpoints, OAuthClient, renewal_margin
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
        self.seconds = 3600
        self.refuses = False
        self.before: Callable[[], Any] | None = None

    async def post(self, *_: object, **__: object) -> Answer:
        self.asked += 1
        if self.before is not None:
            await self.before()
        if self.refuses:
            return Answer(400, {"error": "invalid_grant"})
        grant = {"access_token": f"renewed-{self.asked}", "token_type": "Bearer", "expires_in": self.seconds}
        return Answer(200, grant)


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
    await store.save(CONFIG, token("old", 0))
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


async def test_a_token_of_a_short_life_is_used_for_most_of_it(
    store: LoginStore, login: StoredLogin, endpoint: _TokenEndpoint
) -> None:
    endpoint.seconds = 20
    await store.save(CONFIG, token("old", 0))
    assert [await login.current() for _ in range(3)] == ["renewed-1"] * 3
    of_another_process = StoredLogin(CONFIG, URL, store, cast("OAuthHttp", endpoint))
    assert await of_another_process.current() == "renewed-1"
    assert endpoint.asked == 1


async def test_a_token_near_the_end_of_a_long_life_is_renewed_before_its_use(
    store: LoginStore, login: StoredLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.save(CONFIG, token("old"))
    there = time.time()
    monkeypatch.setattr(time, "time", lambda: there + 3575)
    assert await login.current() == "renewed-1"


@pytest.mark.parametrize(
    ("lifetime", "margin"), [(None, 30), (3600, 30), (300, 30), (200, 20), (20, 2), (0, 0), (-5, 0)]
)
def test_a_token_is_renewed_by_a_share_of_its_life_before_its_end(lifetime: float | None, margin: float) -> None:
    assert renewal_margin(lifetime) == pytest.approx(margin)
