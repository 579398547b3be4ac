"""Keys of an OpenID Connect issuer: when it is asked for them, and what becomes of tokens until it has answered."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from isthmus.a2a.oidc.claims import ClaimNames
from isthmus.a2a.oidc.issuer import Issuer
from isthmus.a2a.oidc.users import IssuerUsers
from isthmus.a2a.server.users.auth import Principal
from support.oidc_issuer import (
    AUDIENCE,
    DOCUMENT,
    Clock,
    OidcIssuer,
    oidc_issuer,
    public_jwk,
    refused,
    rsa_key,
    users_of,
)
from support.waiting import eventually_async
from support.wire_server import Answer, Hold

pytestmark = pytest.mark.anyio


@pytest.fixture
def issuer() -> Iterator[OidcIssuer]:
    found = oidc_issuer()
    with found.server:
        yield found


async def test_keys_are_asked_for_once(issuer: OidcIssuer) -> None:
    users = users_of(issuer)
    tokens = [issuer.token("ec", "ES256", sub=str(number)) for number in range(20)]
    found = await asyncio.gather(*[users.identify(token) for token in tokens])
    assert len({each.name for each in found if isinstance(each, Principal)}) == 20
    assert issuer.asked == [DOCUMENT, "/keys"]


async def test_keys_that_nobody_published_ask_the_issuer_at_most_once_a_minute(issuer: OidcIssuer) -> None:
    clock = Clock()
    users = users_of(issuer, clock=clock)
    assert isinstance(await users.identify(issuer.token()), Principal)
    for number in range(50):
        clock.now += 1
        token = issuer.token(headers={"kid": f"random-{number}"})
        assert (await refused(users, token, 503)).headers == {"Retry-After": str(59 - number)}
    assert issuer.asked == [DOCUMENT, "/keys"]
    clock.now += 10
    assert "does not publish" in (await refused(users, issuer.token(headers={"kid": "another"}))).message
    assert issuer.asked == [DOCUMENT, "/keys"] * 2


async def test_a_key_published_since_the_issuer_was_asked_is_waited_for(issuer: OidcIssuer) -> None:
    clock = Clock()
    users = users_of(issuer, clock=clock)
    assert isinstance(await users.identify(issuer.token()), Principal)
    issuer.keys["new"] = rsa_key(number=1)
    clock.now += 20.5
    refusal = await refused(users, issuer.token("new"), 503)
    assert refusal.headers == {"Retry-After": "40"}
    clock.now += 40
    assert isinstance(await users.identify(issuer.token("new")), Principal)


async def test_an_answer_on_its_way_says_nothing_of_a_token_that_came_later(issuer: OidcIssuer) -> None:
    clock = Clock()
    users = users_of(issuer, clock=clock)
    hold = Hold()
    keys = json.dumps({"keys": [public_jwk(key, kid=kid) for kid, key in issuer.keys.items()]})
    issuer.answers = {"/keys": Answer(200, {}, (hold, keys.encode()))}
    first = asyncio.create_task(users.identify(issuer.token()))
    await eventually_async(lambda: issuer.asked == [DOCUMENT, "/keys"], what="the issuer is asked")
    issuer.keys["new"] = rsa_key(number=1)
    second = asyncio.create_task(refused(users, issuer.token("new"), 503))
    hold.release()
    assert isinstance(await first, Principal)
    assert (await second).headers == {"Retry-After": "60"}


async def test_a_new_key_is_accepted_and_an_old_one_is_not(issuer: OidcIssuer) -> None:
    clock = Clock()
    users = users_of(issuer, clock=clock)
    old = issuer.token()
    assert isinstance(await users.identify(old), Principal)
    issuer.keys = {"new": rsa_key(number=1)}
    clock.now += 61
    assert isinstance(await users.identify(issuer.token("new")), Principal)
    clock.now += 61
    assert "does not publish" in (await refused(users, old)).message


async def test_keys_are_asked_for_again_after_an_hour_while_the_known_ones_serve(issuer: OidcIssuer) -> None:
    clock = Clock()
    endpoint = Issuer(issuer.url, clock=clock)
    users = IssuerUsers(endpoint, AUDIENCE, ClaimNames())
    assert isinstance(await users.identify(issuer.token()), Principal)
    clock.now += 3601
    hold = Hold()
    issuer.answers = {DOCUMENT: Answer(200, {}, (hold, b"{}"))}
    assert isinstance(await users.identify(issuer.token()), Principal)
    await eventually_async(lambda: issuer.asked == [DOCUMENT, "/keys", DOCUMENT], what="the issuer is asked again")
    assert isinstance(await users.identify(issuer.token()), Principal)
    hold.release()
    await endpoint.aclose()


async def test_without_the_issuer_known_keys_serve_and_the_others_wait(
    issuer: OidcIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    users = users_of(issuer, clock=clock)
    assert isinstance(await users.identify(issuer.token()), Principal)
    known = issuer.token()
    issuer.keys["new"] = rsa_key(number=1)
    issuer.go_away()
    clock.now += 61
    unknown = issuer.token("new")
    refusal = await refused(users, unknown, 503)
    assert refusal.headers == {"Retry-After": "60"}
    assert "WWW-Authenticate" not in refusal.headers
    assert isinstance(await users.identify(known), Principal)
    assert "status 503" in caplog.text
    assert not any(part in caplog.text for part in unknown.split("."))
    issuer.answers = {}
    clock.now += 61
    assert isinstance(await users.identify(unknown), Principal)


async def test_a_server_that_never_reached_its_issuer_tries_again_after_seconds(issuer: OidcIssuer) -> None:
    clock = Clock()
    users = users_of(issuer, clock=clock)
    issuer.go_away()
    assert (await refused(users, issuer.token(), 503)).headers == {"Retry-After": "5"}
    issuer.answers = {}
    await refused(users, issuer.token(), 503)
    clock.now += 5
    assert isinstance(await users.identify(issuer.token()), Principal)
    assert issuer.asked == [DOCUMENT, DOCUMENT, "/keys"]
