"""Users of an OpenID Connect issuer, which is a real HTTP server here: who is let in, and who is refused and why."""

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from isthmus.a2a.oidc.claims import ClaimNames
from isthmus.a2a.oidc.issuer import DOCUMENT_BYTES, Issuer
from isthmus.a2a.oidc.keys import IssuerError
from isthmus.a2a.oidc.tokens import MAXIMUM_CHARACTERS
from isthmus.a2a.oidc.users import IssuerUsers
from isthmus.a2a.server.auth import Principal, Refusal
from isthmus.a2a.server.users import NAME
from support.oidc_issuer import AUDIENCE, DOCUMENT, OidcIssuer, ec_key, oidc_issuer, public_jwk, rsa_key
from support.waiting import eventually_async
from support.wire_server import Answer, Hold

pytestmark = pytest.mark.anyio


@pytest.fixture
def issuer() -> Iterator[OidcIssuer]:
    found = oidc_issuer()
    with found.server:
        yield found


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def users_of(issuer: OidcIssuer, names: ClaimNames | None = None, clock: Clock | None = None) -> IssuerUsers:
    return IssuerUsers(Issuer(issuer.url, clock=clock or Clock()), AUDIENCE, names or ClaimNames())


async def refused(users: IssuerUsers, token: str, status: int = 401) -> Refusal:
    """Return the refusal of a token, which repeats no part of it."""
    found = await users.identify(token)
    assert isinstance(found, Refusal)
    assert found.status == status, found.message
    shown = found.message + str(dict(found.headers))
    assert not any(part in shown for part in token.split(".") if len(part) > 8)
    if status == 401:
        challenge = found.headers["WWW-Authenticate"]
        assert challenge == f'Bearer error="invalid_token", error_description="{found.message}"'
        assert found.message.isascii()
        assert '"' not in found.message
        assert "\\" not in found.message
    return found


@pytest.mark.parametrize(("kid", "algorithm"), [("rsa", "RS256"), ("rsa", "PS512"), ("ec", "ES256"), ("ed", "EdDSA")])
async def test_a_token_that_the_issuer_signed_names_a_user(issuer: OidcIssuer, kid: str, algorithm: str) -> None:
    issuer.keys["ed"] = ed25519.Ed25519PrivateKey.generate()
    found = await users_of(issuer).identify(issuer.token(kid, algorithm))
    assert isinstance(found, Principal)
    assert found.name == f"{issuer.url}#sub=248289761001"
    assert found.tier is None
    assert found.token_id == ""
    assert found.expires is not None
    assert 0 < found.expires - time.time() < 340


async def test_the_claims_of_user_and_tier_are_chosen_by_the_server(issuer: OidcIssuer) -> None:
    users = users_of(issuer, ClaimNames("email", "plan"))
    token = issuer.token(email="alice@example.org", email_verified=True, plan="gold", aud=["other", AUDIENCE])
    found = await users.identify(token)
    assert isinstance(found, Principal)
    assert (found.name, found.tier) == (f"{issuer.url}#email=alice@example.org", "gold")
    assert users.has(found.name)
    without = await users.identify(issuer.token(email="alice@example.org", email_verified=True))
    assert isinstance(without, Principal)
    assert (without.name, without.tier) == (found.name, None)


async def test_no_claim_names_the_owner_or_a_user_of_the_server(issuer: OidcIssuer) -> None:
    users = users_of(issuer)
    for value in ("alice", "owner", "local", "x" * 128, "a#sub=b"):
        found = await users.identify(issuer.token(sub=value))
        assert isinstance(found, Principal)
        assert found.name
        assert NAME.fullmatch(found.name) is None
    assert not users.has("alice")
    assert not users.has("")
    assert not users.has(f"{issuer.url}#email=alice")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        " ",
        " alice",
        "a\nb",
        "a\x1b[2J",
        "\u202eecila",
        "zero\u200bwidth",
        "x" * 129,
        7,
        True,
        ["a"],
        {"a": 1},
    ],
)
async def test_a_claim_that_is_not_a_plain_line_is_refused(issuer: OidcIssuer, value: Any) -> None:
    message = (await refused(users_of(issuer, ClaimNames("login")), issuer.token(login=value))).message
    assert "the claim login" in message
    if value is not None:
        tier = await refused(users_of(issuer, ClaimNames("sub", "plan")), issuer.token(plan=value))
        assert tier.message.startswith("the claim plan is not a text of 1 to 64 printable characters")


@pytest.mark.parametrize("verified", [None, False, "true", 1])
async def test_an_email_address_that_is_not_verified_names_nobody(issuer: OidcIssuer, verified: Any) -> None:
    token = issuer.token(email="alice@example.org", email_verified=verified)
    assert "not say that the email" in (await refused(users_of(issuer, ClaimNames("email")), token)).message


NOW = int(time.time())
INVALID: dict[str, dict[str, Any]] = {
    "the token has expired": {"exp": NOW - 3600},
    "the token is not valid yet": {"nbf": NOW + 3600},
    "the token is for another audience than this server": {"aud": "other"},
    "the token is of another issuer than this server accepts": {"iss": "https://evil.example"},
    "the token does not have the claim exp": {"exp": None},
    "the token does not have the claim aud": {"aud": None},
    "the claim exp of the token is not a time in seconds": {"exp": 10**400},
    "the token is not a well-formed JWT": {"exp": "soon"},
}


@pytest.mark.parametrize("message", INVALID)
async def test_a_token_that_is_not_valid_here_and_now_is_refused_with_the_reason(
    issuer: OidcIssuer, message: str
) -> None:
    assert (await refused(users_of(issuer), issuer.token(**INVALID[message]))).message == message


@pytest.mark.parametrize(
    "claims",
    [
        {"iat": NOW + 3600},
        {"aud": [7]},
        {"aud": {"isthmus": True}},
        {"aud": ""},
        {"iss": ["x"]},
        {"exp": True},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"nbf": float("inf")},
        {"iat": "x"},
        {"sub": 7},
        {"deep": json.loads("[" * 900 + "]" * 900)},
        {"large": "x" * MAXIMUM_CHARACTERS},
    ],
    ids=lambda claims: str(claims).replace(str(NOW + 3600), "in an hour")[:30],
)
async def test_hostile_claims_are_refused(issuer: OidcIssuer, claims: dict[str, Any]) -> None:
    users = users_of(issuer)
    if "deep" in claims:
        assert isinstance(await users.identify(issuer.token(**claims)), Principal)  # not looked at, and harmless
        return
    await refused(users, issuer.token(**claims))


async def test_a_signature_that_is_not_the_issuers_is_refused(issuer: OidcIssuer) -> None:
    users = users_of(issuer)
    stranger = jwt.encode(issuer.claims(), rsa_key(number=1), "RS256", headers={"kid": "rsa"})
    assert (await refused(users, stranger)).message == "the signature of the token is wrong"
    head, _, signature = issuer.token().split(".")
    other = issuer.token(sub="somebody else").split(".")[1]
    assert (await refused(users, f"{head}.{other}.{signature}")).message == "the signature of the token is wrong"
    await refused(users, f"{head}.{other}.")
    confused = issuer.token("ec", "ES256", {"kid": "rsa"})
    assert "key that its issuer does not publish" in (await refused(users, confused)).message


@pytest.mark.parametrize("algorithm", ["none", "None", "HS256", "HS512", "", "dir", 7, None, ["RS256"]])
async def test_only_asymmetric_signatures_are_accepted(issuer: OidcIssuer, algorithm: Any) -> None:
    users = users_of(issuer)
    for secret in (b"", issuer.public_pem(), issuer.public_pem().strip()):
        token = issuer.forged({"alg": algorithm, "kid": "rsa", "typ": "JWT"}, secret)
        message = (await refused(users, token)).message
        assert "is not signed by one of these algorithms" in message or "not a well-formed" in message
    assert issuer.asked == []


@pytest.mark.parametrize("head", [{"kid": 7}, {"kid": "x" * 600}, {"crit": ["exp"]}, {"b64": False, "crit": ["b64"]}])
async def test_a_head_that_is_not_understood_is_refused(issuer: OidcIssuer, head: dict[str, Any]) -> None:
    await refused(users_of(issuer), issuer.forged({"alg": "RS256", **head}, b"x"))
    assert issuer.asked == []


@pytest.mark.parametrize(
    "token", ["a.b.c", "e30.e30.", "..", "eyJhbGciOiJSUzI1NiJ9.W10.x", "bnVsbA.bnVsbA.x", "_-8.a.b"]
)
async def test_what_only_looks_like_a_token_is_refused_without_asking(issuer: OidcIssuer, token: str) -> None:
    users = users_of(issuer)
    if users.takes(token):
        assert (await refused(users, token)).message.startswith("the token is ")
    assert not users.takes("isthmus_12345678_abc")
    assert not users.takes("a.b.c.d.e")
    assert issuer.asked == []


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


UNUSABLE: dict[str, tuple[str, Answer]] = {
    "a redirect": (DOCUMENT, Answer(302, {"location": "/other"})),
    "no JSON": (DOCUMENT, Answer(200, {}, (b"<html>",))),
    "a list": (DOCUMENT, Answer.json([])),
    "no keys": ("/keys", Answer.json({"keys": []})),
    "keys that are none": (
        "/keys",
        Answer.json({"keys": [7, None, {}, {"kty": "oct", "k": "c2VjcmV0", "kid": "rsa"}]}),
    ),
    "keys that are no list": ("/keys", Answer.json({"keys": {"rsa": {}}})),
    "nesting": ("/keys", Answer(200, {}, (b"[" * 100_000,))),
}


@pytest.mark.parametrize("kind", UNUSABLE)
async def test_an_answer_of_the_issuer_that_cannot_be_used_lets_nobody_in(issuer: OidcIssuer, kind: str) -> None:
    path, answer = UNUSABLE[kind]
    issuer.answers = {path: answer}
    await refused(users_of(issuer), issuer.token(), 503)


async def test_a_document_of_another_issuer_is_refused(issuer: OidcIssuer, caplog: pytest.LogCaptureFixture) -> None:
    issuer.document = {"issuer": issuer.url + "/"}
    await refused(users_of(issuer), issuer.token(), 503)
    assert "--oidc-issuer must be the same text" in caplog.text
    assert issuer.asked == [DOCUMENT]


async def test_an_answer_that_is_too_large_or_compressed_is_not_read(issuer: OidcIssuer) -> None:
    issuer.document = {"filling": "x" * (DOCUMENT_BYTES - 1000)}
    assert isinstance(await users_of(issuer).identify(issuer.token()), Principal)
    issuer.document = {"filling": "x" * DOCUMENT_BYTES}
    await refused(users_of(issuer), issuer.token(), 503)
    issuer.document = {}
    whole = json.dumps({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"}).encode()
    issuer.answers = {DOCUMENT: Answer(200, {"content-encoding": "gzip"}, (whole,))}
    await refused(users_of(issuer), issuer.token(), 503)


@pytest.mark.parametrize(
    "place", ["http://evil.example/keys", "ftp://127.0.0.1/keys", "file:///etc/passwd", "/keys", 7]
)
async def test_keys_are_fetched_over_https_or_on_this_machine_alone(
    issuer: OidcIssuer, place: Any, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.document = {"jwks_uri": place}
    await refused(users_of(issuer), issuer.token(), 503)
    assert issuer.asked == [DOCUMENT]
    assert "jwks_uri" in caplog.text or "is not a URL such as https" in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "http://login.example.org",
        "ftp://x",
        "",
        "https://",
        "https://a:b@example.org",
        "https://x.example/?a",
        "https://[",
        "https://x.example/#a",
    ],
)
def test_the_url_of_an_issuer_is_https(url: str) -> None:
    with pytest.raises(IssuerError):
        Issuer(url)


async def test_keys_for_other_uses_or_too_weak_are_left_out(issuer: OidcIssuer) -> None:
    issuer.published = [
        public_jwk(rsa_key(1024), kid="weak"),
        public_jwk(rsa_key(), kid="encryption", use="enc"),
        public_jwk(rsa_key(), kid="wrapping", key_ops=["wrapKey"]),
        public_jwk(rsa_key(), kid="other", alg="RS512"),
        public_jwk(ec_key(ec.SECP256K1), kid="curve"),
        {**public_jwk(ec_key(), kid="broken"), "x": "AAAA"},
        public_jwk(ec_key(), kid="ec"),
    ]
    for kid in ("weak", "encryption", "wrapping", "other"):
        token = jwt.encode(issuer.claims(), rsa_key(), "RS256", headers={"kid": kid})
        assert "does not publish" in (await refused(users_of(issuer), token)).message
    users = users_of(issuer)
    assert isinstance(await users.identify(issuer.token("ec", "ES256")), Principal)


async def test_a_token_that_names_no_key_is_verified_with_the_only_one(issuer: OidcIssuer) -> None:
    del issuer.keys["ec"]
    token = jwt.encode(issuer.claims(), rsa_key(), "RS256")
    assert isinstance(await users_of(issuer).identify(token), Principal)
    issuer.keys["second"] = rsa_key(number=1)
    assert "does not publish" in (await refused(users_of(issuer), token)).message
