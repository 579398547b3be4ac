"""Users of an OpenID Connect issuer, which is a real HTTP server here: who is let in, and who is refused and why."""

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
from isthmus.a2a.server.users.auth import Principal, Refusal
from isthmus.a2a.server.users.users import NAME
from support.oidc_issuer import (
    AUDIENCE,
    DOCUMENT,
    OidcIssuer,
    ec_key,
    oidc_issuer,
    public_jwk,
    refused,
    rsa_key,
    users_of,
)
from support.wire_server import Answer

pytestmark = pytest.mark.anyio


@pytest.fixture
def issuer() -> Iterator[OidcIssuer]:
    found = oidc_issuer()
    with found.server:
        yield found


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
    found = await users.identify(token)
    assert found is None or (isinstance(found, Refusal) and found.message.startswith("the token is "))
    assert await users.identify("isthmus_12345678_abc") is None
    assert await users.identify("a.b.c.d.e") is None
    assert issuer.asked == []


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
