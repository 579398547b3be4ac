"""The OAuth 2.1 messages for a login and its renewal: URLs, forms, challenges, answers. No I/O.

RFC 6749, 7636 (PKCE), 8707 (resource indicators), 9207 (``iss``), 7591 (registration), 7009 (revocation). Error
messages quote the error fields of a server's answer, shortened, and never the data that was sent. Not here: the
discovery of endpoints, see :mod:`isthmus.mcp_host.oauth.discovery`, and sending, see
:mod:`isthmus.mcp_host.oauth.http`.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, cast
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.record import record
from isthmus.text.visible import single_line

MAXIMUM_WORDS = 300
"""Maximum number of characters of a server's text that a message quotes."""
FORGOTTEN_CODES = ("invalid_client", "unauthorized_client")
"""Error codes of a server that does not know the client."""
_PASSING_CODES = ("temporarily_unavailable", "server_error", "slow_down")

_PARAMETER = re.compile(r'(?<![A-Za-z_])([A-Za-z_]++)\s*+=\s*+(?:"([^"\\]*+(?:\\.[^"\\]*+)*)"|([^\s,"]+))')


@record
class Endpoints:
    """The endpoints of an authorization server. ``issuer`` is None if they are configured, not discovered."""

    authorize: str
    token: str
    issuer: str | None = None
    register: str | None = None
    revoke: str | None = None
    scopes: tuple[str, ...] = ()
    challenge_methods: tuple[str, ...] | None = None
    token_methods: tuple[str, ...] | None = None
    takes_metadata_url: bool = False
    names_itself: bool = False
    """Whether the server announced that it sends ``iss`` with each redirect."""


@record
class OAuthClient:
    """Our client registration at an authorization server; ``method`` is its ``token_endpoint_auth_method``."""

    id: str
    secret: str | None = field(default=None, repr=False)
    method: str = "none"


MARGIN_SECONDS = 30.0
"""Largest remaining lifetime of a token, in seconds, below which it is renewed before it is used."""
_MARGIN_SHARE = 0.1
"""The same as a share of the whole lifetime, for tokens of a short one: they would be renewed for each request."""


def renewal_margin(lifetime: float | None) -> float:
    """Return the remaining lifetime in seconds below which a token of this whole ``lifetime`` is renewed."""
    return MARGIN_SECONDS if lifetime is None else min(MARGIN_SECONDS, max(0.0, _MARGIN_SHARE * lifetime))


@record
class Grant:
    """The answer of a token endpoint. ``seconds`` is the token's lifetime; None if not stated."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    seconds: float | None = None
    scope: str | None = None


@record
class Challenge:
    """The challenge of a refusal (WWW-Authenticate)."""

    error: str | None = None
    scope: str | None = None
    resource_metadata: str | None = None

    @classmethod
    def of(cls, header: str | None) -> "Challenge":
        """Return the challenge in a header; missing parameters are None."""
        found: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(header or ""):
            found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
        return cls(found.get("error"), found.get("scope"), found.get("resource_metadata"))


@record
class Verifier:
    """The secrets of one login: its state, and the proof that the same client redeems the code (PKCE, S256)."""

    secret: str = field(default_factory=lambda: secrets.token_urlsafe(64), repr=False)
    state: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def challenge(self) -> str:
        """The code challenge that the authorization server receives."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.secret.encode()).digest()).decode().rstrip("=")


class TokenRefusedError(OAuthError):
    """The authorization server refused; ``code`` is its error code (RFC 6749, section 5.2)."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code

    @property
    def is_of_client(self) -> bool:
        """Whether the server refuses the client, not only its request."""
        return self.code in FORGOTTEN_CODES


# --- Asking ----------------------------------------------------------------------------------------------------------


def authorization_url(
    endpoints: Endpoints,
    client: OAuthClient,
    redirect_uri: str,
    verifier: Verifier,
    *,
    resource: str,
    scope: str | None,
    audiences: Sequence[str],
) -> str:
    """Return the page at which the user logs in."""
    parameters = [
        ("response_type", "code"),
        ("client_id", client.id),
        ("redirect_uri", redirect_uri),
        ("state", verifier.state),
        ("code_challenge", verifier.challenge),
        ("code_challenge_method", "S256"),
        ("resource", resource),
    ]
    if scope:
        parameters.append(("scope", scope))
        if "offline_access" in scope.split():
            parameters.append(("prompt", "consent"))  # OpenID Connect requires it for a refresh token
    if audiences:
        parameters.append(("audience", " ".join(audiences)))
    parts = urlsplit(endpoints.authorize)
    query = urlencode([*parse_qsl(parts.query, keep_blank_values=True), *parameters])
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


def code_form(code: str, redirect_uri: str, verifier: Verifier, resource: str, audiences: Sequence[str]) -> "Form":
    """Return the form that redeems a code."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri,
        "code_verifier": verifier.secret,
        "resource": resource,
    }
    return {**form, "audience": " ".join(audiences)} if audiences else form


def refresh_form(refresh_token: str, resource: str, audiences: Sequence[str]) -> "Form":
    """Return the form that renews a token."""
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token, "resource": resource}
    return {**form, "audience": " ".join(audiences)} if audiences else form


Form = dict[str, str]


def authenticated(form: Mapping[str, str], client: OAuthClient) -> tuple[Form, dict[str, str]]:
    """Return the form with the client's authentication, and the headers for it."""
    if client.method == "client_secret_basic" and client.secret:
        pair = f"{quote(client.id, safe='')}:{quote(client.secret, safe='')}"
        return dict(form), {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    named = {**form, "client_id": client.id}
    if client.method == "client_secret_post" and client.secret:
        named["client_secret"] = client.secret
    return named, {}


def secret_method(endpoints: Endpoints, secret: str | None) -> str:
    """Return the authentication method of a client with this secret."""
    if not secret:
        return "none"
    known = endpoints.token_methods
    if known is not None and "client_secret_post" not in known and "client_secret_basic" in known:
        return "client_secret_basic"
    return "client_secret_post"


def registration(redirect_uri: str, scope: str | None) -> dict[str, Any]:
    """Return the request that registers a client."""
    asked: dict[str, Any] = {
        "client_name": "Isthmus",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }
    return {**asked, "scope": scope} if scope else asked


# --- Answers ---------------------------------------------------------------------------------------------------------


def registered(value: object) -> OAuthClient | None:
    """Return the client in the answer to a registration; None if the answer contains no client.

    Raises:
        OAuthError: the client is registered for a method that is not supported, or lacks the secret for it.
    """
    if not isinstance(value, Mapping):
        return None
    values = cast("Mapping[str, object]", value)
    found, secret, method = (
        values.get("client_id"),
        values.get("client_secret"),
        values.get("token_endpoint_auth_method"),
    )
    if not isinstance(found, str) or not found:
        return None
    secret = secret if isinstance(secret, str) and secret else None
    if not isinstance(method, str) or not method:
        method = "client_secret_basic" if secret else "none"
    if method not in ("none", "client_secret_post", "client_secret_basic"):
        raise OAuthError(f"it registered the client for {_short(method)}, which is not supported; set oauth.clientId")
    if method != "none" and secret is None:
        raise OAuthError(f"it registered the client for {method} without a secret; set oauth.clientId")
    return OAuthClient(found, secret, method)


def granted(status: int, value: object, place: str) -> Grant:
    """Return the grant in an answer of a token endpoint.

    Raises:
        TokenRefusedError: the endpoint refused.
        OAuthError: the endpoint failed, or the answer is not a grant.
    """
    values: Mapping[str, object] = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
    if status >= 400 or "error" in values:
        code = values.get("error")
        if isinstance(code, str) and code and code not in _PASSING_CODES and status < 500 and status != 429:
            raise TokenRefusedError(f"the token endpoint {place} refused: {said(values)}", code)
        if status == 401:
            raise TokenRefusedError(f"the token endpoint {place} refused with HTTP 401", "invalid_client")
        raise OAuthError(f"the token endpoint {place} answered HTTP {status}")
    access = values.get("access_token")
    kind = values.get("token_type")
    if not isinstance(access, str) or not access or any(not "!" <= character <= "~" for character in access):
        raise OAuthError(f"the answer of the token endpoint {place} contains no access_token")
    if isinstance(kind, str) and kind.lower() != "bearer":
        raise OAuthError(f"the token endpoint {place} gave a token of type {_short(kind)}; expected Bearer")
    refresh, scope = values.get("refresh_token"), values.get("scope")
    return Grant(
        access,
        refresh if isinstance(refresh, str) and refresh else None,
        _seconds(values.get("expires_in")),
        scope if isinstance(scope, str) and scope else None,
    )


def said(values: Mapping[str, object]) -> str:
    """Return the error fields of an answer or a redirect as text."""
    words = [str(values[name]) for name in ("error", "error_description") if isinstance(values.get(name), str)]
    return _short(": ".join(words)) or "it gave no reason"


def pasted(text: str) -> Mapping[str, str]:
    """Return the values in the text that the user pasted: the address of a redirect, its query, or the code alone.

    Raises:
        OAuthError: the text contains no code.
    """
    address = "".join(text.split())  # terminals break long lines
    if "=" in address:
        query = urlsplit(address).query if "://" in address else address.rpartition("?")[2]
        values = {name: found[0] for name, found in parse_qs(query).items()}
        if "code" in values or "error" in values:
            if "state" not in values:
                raise OAuthError("the state is missing in it; copy the whole final address of the browser")
            return values
    elif re.fullmatch(r"[A-Za-z0-9._~+/-]{6,2048}", text.strip()) and "://" not in text:
        return {"code": text.strip()}
    raise OAuthError(
        "there is no code in it; expected the whole final address of the browser, such as "
        "http://localhost:7777/oauth/callback?code=...&state=..."
    )


def require_redirect(values: Mapping[str, str], state: str, endpoints: Endpoints) -> str:
    """Return the code of the redirect for this login.

    A code that was pasted without the address has no state; it is bound to this login by PKCE.

    Raises:
        TokenRefusedError: the redirect reports that the login was refused.
        OAuthError: the redirect belongs to another login, or is from another server.
    """
    given = values.get("state")
    is_code_alone = set(values) == {"code"}
    if not is_code_alone and (given is None or not secrets.compare_digest(given.encode(), state.encode())):
        raise OAuthError("that is the answer to another login (its state differs); log in again")
    issuer = values.get("iss")
    if endpoints.issuer is not None and not is_code_alone:
        if issuer is not None and issuer != endpoints.issuer:  # RFC 9207: character by character
            raise OAuthError(f"the answer comes from {_short(issuer)}; expected one from {endpoints.issuer} (iss)")
        if issuer is None and endpoints.names_itself:
            raise OAuthError("the answer does not name its server (iss), although the server's metadata announce it")
    if "error" in values:
        raise TokenRefusedError(f"the login was refused: {said(values)}", values["error"])
    code = values.get("code")
    if not code:
        raise OAuthError("the answer of the authorization server contains no code")
    return code


def union(*scopes: str | None) -> str | None:
    """Return all scopes, each once, in the order of their first mention."""
    words = dict.fromkeys(word for scope in scopes if scope for word in scope.split())
    return " ".join(words) or None


def _seconds(value: object) -> float | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = int(value)  # some servers quote it
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e11:
        return None
    return float(value)


def _short(text: str) -> str:
    visible = single_line(text)
    return visible if len(visible) <= MAXIMUM_WORDS else f"{visible[: MAXIMUM_WORDS - 3]}..."
