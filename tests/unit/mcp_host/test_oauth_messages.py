import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from isthmus.mcp_host.config.oauth_settings import OAuthSettings
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.discovery import discover
from isthmus.mcp_host.oauth.http import Answer, OAuthHttp
from isthmus.mcp_host.oauth.messages import (
    Challenge,
    Endpoints,
    OAuthClient,
    TokenRefusedError,
    Verifier,
    authenticated,
    authorization_url,
    granted,
    pasted,
    registered,
    require_redirect,
    union,
)
from isthmus.mcp_host.oauth.store import Registration, StoredToken
from isthmus.mcp_host.oauth.token_file import decode, encode

ENDPOINTS = Endpoints("https://as.example/authorize", "https://as.example/token", issuer="https://as.example")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, Challenge()),
        ("Bearer", Challenge()),
        ('Basic realm="x", Bearer error="invalid_token"', Challenge("invalid_token")),
        (
            'Bearer error="insufficient_scope", scope="a b", resource_metadata="https://x/y?z=1, 2"',
            Challenge("insufficient_scope", "a b", "https://x/y?z=1, 2"),
        ),
        (r'Bearer scope="a \"b\""', Challenge(scope='a "b"')),
        ("Bearer error=insufficient_scope, scope=a", Challenge("insufficient_scope", "a")),
    ],
)
def test_a_challenge_is_read_in_every_notation(header: str | None, expected: Challenge) -> None:
    assert Challenge.of(header) == expected


class PublishedDocuments(OAuthHttp):
    """Answers with these documents, and notes the addresses that were asked."""

    def __init__(self, server_url: str, documents: Mapping[str, Any]) -> None:
        super().__init__(server_url)
        self.documents = documents
        self.asked: list[str] = []

    async def get(self, url: str, what: str) -> Answer:
        self.asked.append(url)
        return Answer(200, self.documents[url]) if url in self.documents else Answer(404, None)


RESOURCE = "https://m.example/.well-known/oauth-protected-resource"
METADATA = "https://as.example/.well-known/oauth-authorization-server"
ENDPOINTS_OF_AS = {
    "issuer": "https://as.example",
    "authorization_endpoint": "https://as.example/authorize",
    "token_endpoint": "https://as.example/token",
}


@pytest.mark.anyio
async def test_metadata_is_looked_for_where_each_standard_puts_it() -> None:
    appended = "https://as.example/tenant/.well-known/openid-configuration"
    documents = {
        RESOURCE: {"authorization_servers": ["https://as.example/tenant/"]},
        appended: {**ENDPOINTS_OF_AS, "issuer": "https://as.example/tenant/"},
    }
    http = PublishedDocuments("https://m.example/a/mcp?x=1", documents)
    challenge = Challenge(resource_metadata="https://m.example/meta")
    found = await discover(http, "https://me:pass@m.example/a/mcp?x=1", OAuthSettings(), challenge)
    assert found.resource == "https://m.example/a/mcp"
    assert http.asked == [
        "https://m.example/meta",
        "https://m.example/.well-known/oauth-protected-resource/a/mcp",
        "https://m.example/.well-known/oauth-protected-resource",
        "https://as.example/.well-known/oauth-authorization-server/tenant",
        "https://as.example/.well-known/openid-configuration/tenant",
        "https://as.example/tenant/.well-known/openid-configuration",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("server_url", "named", "is_taken"),
    [
        ("https://M.example/mcp", "https://m.example", True),
        ("https://m.example/mcp/", "https://m.example/mcp", True),
        ("https://m.example/mcp", "https://m.example/mc", False),
        ("https://m.example/mcp", "https://evil.example", False),
        ("https://m.example/mcp", "http://m.example/mcp", False),
        ("https://m.example/mcp", "https://m.example:8/mcp", False),
        ("https://m.example/mcp", "https://[broken", False),
    ],
)
async def test_a_resource_is_itself_or_what_it_lies_below(server_url: str, named: str, is_taken: bool) -> None:
    resource = {"resource": named, "authorization_servers": ["https://as.example"]}
    http = PublishedDocuments(server_url, {RESOURCE: resource, METADATA: ENDPOINTS_OF_AS})
    if is_taken:
        assert (await discover(http, server_url, OAuthSettings(), Challenge())).resource == named
        return
    with pytest.raises(OAuthError, match="describes"):
        await discover(http, server_url, OAuthSettings(), Challenge())


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("issuer", "named", "is_same"),
    [
        ("https://as.example", "https://as.example/", True),
        ("https://as.example/b", "https://as.example/b/", False),
    ],
)
async def test_an_issuer_may_be_written_with_the_slash_of_a_bare_host(issuer: str, named: str, is_same: bool) -> None:
    path = issuer.removeprefix("https://as.example")
    documents = {
        RESOURCE: {"authorization_servers": [issuer]},
        f"{METADATA}{path}": {**ENDPOINTS_OF_AS, "issuer": named},
    }
    http = PublishedDocuments("https://m.example", documents)
    if is_same:
        assert (await discover(http, "https://m.example", OAuthSettings(), Challenge())).endpoints.issuer == named
        return
    with pytest.raises(OAuthError, match=f"issuer {named}; expected {issuer}"):
        await discover(http, "https://m.example", OAuthSettings(), Challenge())


@pytest.mark.anyio
async def test_members_that_the_sdks_types_refuse_do_not_end_a_login() -> None:
    documents = {
        RESOURCE: {
            "authorization_servers": ["https://as.example"],
            "resource_documentation": "",
            "scopes_supported": ["a", 7],
        },
        METADATA: {**ENDPOINTS_OF_AS, "service_documentation": "", "response_types_supported": None},
    }
    http = PublishedDocuments("https://m.example", documents)
    found = await discover(http, "https://m.example", OAuthSettings(), Challenge())
    assert (found.scope, found.endpoints.token) == ("a", "https://as.example/token")


def test_the_page_keeps_its_addresss_query_and_offline_access_asks_for_consent() -> None:
    endpoints = Endpoints("https://as.example/authorize?tenant=1#top", "https://as.example/token")
    verifier = Verifier()
    url = authorization_url(
        endpoints,
        OAuthClient("me"),
        "http://localhost:1/c",
        verifier,
        resource="r",
        scope="a offline_access",
        audiences=(),
    )
    assert url.startswith("https://as.example/authorize?tenant=1&response_type=code&client_id=me&")
    assert "prompt=consent" in url
    assert "audience" not in url
    assert verifier.secret not in url
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", verifier.challenge)


def test_a_client_says_who_it_is_in_the_way_it_was_registered_for() -> None:
    basic = OAuthClient("a b", "s:", "client_secret_basic")
    assert authenticated({"x": "1"}, basic) == ({"x": "1"}, {"Authorization": "Basic YSUyMGI6cyUzQQ=="})
    assert authenticated({}, OAuthClient("a", "s", "client_secret_post"))[0] == {"client_id": "a", "client_secret": "s"}
    assert authenticated({}, OAuthClient("a")) == ({"client_id": "a"}, {})
    assert "s:" not in repr(basic)


@pytest.mark.parametrize(
    ("status", "value", "error", "words"),
    [
        (400, {"error": "invalid_grant", "error_description": "no\nmore"}, TokenRefusedError, "invalid_grant: no more"),
        (401, None, TokenRefusedError, "HTTP 401"),
        (200, {"error": "bad_verification_code"}, TokenRefusedError, "bad_verification_code"),
        (400, {"error": "temporarily_unavailable"}, OAuthError, "answered HTTP 400"),
        (429, {"error": "invalid_request"}, OAuthError, "answered HTTP 429"),
        (503, "<h1>", OAuthError, "answered HTTP 503"),
        (200, [], OAuthError, "contains no access_token"),
        (200, {"access_token": "a\r\nX: y"}, OAuthError, "contains no access_token"),
        (200, {"access_token": "a", "token_type": "DPoP"}, OAuthError, "of type DPoP; expected Bearer"),
    ],
)
def test_what_a_token_endpoint_refuses_is_told_from_what_it_fails_at(
    status: int, value: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(OAuthError, match=re.escape(words)) as caught:
        granted(status, value, "https://as.example/token")
    assert type(caught.value) is error


def test_a_grant_says_how_long_it_holds_in_whatever_form() -> None:
    for seconds, expected in ((60, 60), ("60", 60), (-1, None), (True, None), ("soon", None), (None, None)):
        assert granted(200, {"access_token": "a", "expires_in": seconds}, "x").seconds == expected
    assert "secret" not in repr(granted(200, {"access_token": "secret", "refresh_token": "secret"}, "x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://localhost:7777/oauth/callback?code=a%2Fb&state=s", {"code": "a/b", "state": "s"}),
        ("?code=a&state=s&iss=https%3A%2F%2Fas.example", {"code": "a", "state": "s", "iss": "https://as.example"}),
        (" code=a&state=s ", {"code": "a", "state": "s"}),
        ("4/0AX4XfWh-code_with.all~of+it", {"code": "4/0AX4XfWh-code_with.all~of+it"}),
    ],
)
def test_what_is_pasted_is_an_address_a_query_or_a_code(text: str, expected: dict[str, str]) -> None:
    assert pasted(text) == expected


@pytest.mark.parametrize("text", ["", "what is it", "http://localhost:7777/", "abc", "http://x?state=s", "code=a"])
def test_what_holds_no_answer_is_refused(text: str) -> None:
    with pytest.raises(OAuthError):
        pasted(text)


def test_the_answer_must_be_the_one_to_this_login() -> None:
    assert require_redirect({"code": "c", "state": "s", "iss": "https://as.example"}, "s", ENDPOINTS) == "c"
    assert require_redirect({"code": "c"}, "s", ENDPOINTS) == "c"
    for values, words in (
        ({"code": "c", "state": "x"}, "another login"),
        ({"code": "c", "iss": "https://as.example"}, "another login"),
        ({"code": "c", "state": "s", "iss": "https://evil.example"}, "expected one from https://as.example"),
        ({"code": "c", "state": "s", "iss": "https://as.example/"}, "expected one from https://as.example"),
        ({"state": "s"}, "contains no code"),
    ):
        with pytest.raises(OAuthError, match=words):
            require_redirect(values, "s", ENDPOINTS)
    promising = Endpoints("a", "t", issuer="https://as.example", names_itself=True)
    with pytest.raises(OAuthError, match="does not name its server"):
        require_redirect({"code": "c", "state": "s"}, "s", promising)


def test_scopes_are_joined_each_once_in_their_order() -> None:
    assert union("a b", None, "b c") == "a b c"
    assert union(None, "") is None


def test_a_registration_must_be_one_that_can_be_used() -> None:
    assert registered({"client_id": "a", "client_secret": "s"}) == OAuthClient("a", "s", "client_secret_basic")
    assert registered({"client_secret": "s"}) is None
    for method in ("private_key_jwt", "client_secret_post"):
        with pytest.raises(OAuthError, match=r"set oauth\.clientId"):
            registered({"client_id": "a", "token_endpoint_auth_method": method})


def test_endpoints_are_https_or_on_this_machine_for_a_server_of_this_machine() -> None:
    remote, local = OAuthHttp("https://m.example/mcp"), OAuthHttp("http://127.0.0.1:5/mcp")
    remote.require("https://as.example/token", "it")
    local.require("http://localhost:9/token", "it")
    OAuthHttp("https://m.example", trusted=("http://localhost:9/x",)).require("http://localhost:9/token", "it")
    OAuthHttp("http://intranet:5/mcp").require("http://intranet:5/token", "it")
    for url in (
        "http://as.example/token",
        "http://localhost:9/token",
        "https://127.0.0.1/token",
        "https://[::1]/token",
        "file:///etc/passwd",
        "https://user@as.example/",
        "https://[broken",
        "https://evil.example\\.as.example/token",
        "https://127.1/token",
        "https://as.example/\x1b[2J",
    ):
        with pytest.raises(OAuthError):
            remote.require(url, "it")


def test_an_entry_keeps_what_others_wrote_and_comes_back_as_it_was() -> None:
    token = StoredToken(
        "access",
        "refresh",
        float(round(time.time())),
        "a b",
        "https://m.example/mcp",
        Registration(OAuthClient("me", "secret", "client_secret_post"), "https://as.example", "http://localhost:1/c"),
        Endpoints("https://as.example/authorize", "https://as.example/token", "https://as.example", revoke="https://r"),
        "https://m.example",
        "a b c",
    )
    entry = encode("s", token, {"theirs": 1, "tokenUrl": "old"})
    assert (entry["theirs"], entry["tokenUrl"], entry["clientId"]) == (1, "https://as.example/token", "me")
    lifetime = entry["token"]["expiresAt"] / 1000 - entry["updatedAt"] / 1000
    assert decode(entry) == replace(token, lifetime=lifetime)
    assert "secret'" not in repr(token)
    for broken in ({}, {"token": 1}, {"token": {"accessToken": ""}}, {"token": {"accessToken": 5}}):
        assert decode(broken) is None
