import re
import time
from typing import Any

import pytest

from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.discovery import is_part_of, metadata_urls, resource_urls
from isthmus.mcp_host.oauth.http import OAuthHttp
from isthmus.mcp_host.oauth.messages import (
    Challenge,
    Endpoints,
    OAuthClient,
    TokenRefusedError,
    Verifier,
    authenticated,
    authorization_url,
    granted,
    is_same_issuer,
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


def test_metadata_is_looked_for_where_each_standard_puts_it() -> None:
    assert metadata_urls("https://as.example/tenant/") == [
        "https://as.example/.well-known/oauth-authorization-server/tenant",
        "https://as.example/.well-known/openid-configuration/tenant",
        "https://as.example/tenant/.well-known/openid-configuration",
    ]
    assert len(metadata_urls("https://as.example")) == 2
    assert resource_urls("https://m.example/a/mcp?x=1", Challenge(resource_metadata="https://m.example/meta")) == [
        "https://m.example/meta",
        "https://m.example/.well-known/oauth-protected-resource/a/mcp",
        "https://m.example/.well-known/oauth-protected-resource",
    ]


def test_a_resource_is_itself_or_what_it_lies_below() -> None:
    assert is_part_of("https://M.example/mcp", "https://m.example")
    assert is_part_of("https://m.example/mcp/", "https://m.example/mcp")
    for other in ("https://m.example/mc", "https://evil.example", "http://m.example/mcp", "https://m.example:8/mcp"):
        assert not is_part_of("https://m.example/mcp", other)


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
        (200, [], OAuthError, "holds no access_token"),
        (200, {"access_token": "a\r\nX: y"}, OAuthError, "holds no access_token"),
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
        ({"state": "s"}, "holds no code"),
    ):
        with pytest.raises(OAuthError, match=words):
            require_redirect(values, "s", ENDPOINTS)
    promising = Endpoints("a", "t", issuer="https://as.example", names_itself=True)
    with pytest.raises(OAuthError, match="as that server promised"):
        require_redirect({"code": "c", "state": "s"}, "s", promising)


def test_issuers_and_scopes() -> None:
    assert is_same_issuer("https://a", "https://a/")
    assert not is_same_issuer("https://a/b", "https://a/b/")
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
    assert decode(entry) == token
    assert "secret'" not in repr(token)
    for broken in ({}, {"token": 1}, {"token": {"accessToken": ""}}, {"token": {"accessToken": 5}}):
        assert decode(broken) is None
