"""Finds the authorization server of an MCP server: RFC 9728, then RFC 8414 or OpenID Connect Discovery.

What is configured (``authorizationUrl``, ``tokenUrl``) is not asked for. A server of MCP's revision 2025-03-26, which
publishes nothing, has its endpoints at ``/authorize``, ``/token`` and ``/register``. Deliberately not here: HTTP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from isthmus.mcp_host.config.oauth_settings import OAuthSettings
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.http import OAuthHttp, place
from isthmus.mcp_host.oauth.messages import Challenge, Endpoints, is_same_issuer, union


@dataclass(frozen=True, slots=True)
class Found:
    """The data for a login. ``resource`` is the token's resource (RFC 8707), ``scope`` what the server wants."""

    endpoints: Endpoints
    resource: str
    scope: str | None = None


@dataclass(frozen=True, slots=True)
class _Resource:
    resource: str
    issuer: str | None = None
    scope: str | None = None


async def discover(
    http: OAuthHttp, server_url: str, settings: OAuthSettings, challenge: Challenge, *, is_for_user: bool = True
) -> Found:
    """Return the endpoints to log in at, as a user or as a machine.

    Raises:
        OAuthError: there are none, or what is published contradicts itself.
    """
    if settings.token_url and (settings.authorization_url or not is_for_user):
        endpoints = Endpoints(settings.authorization_url or "", settings.token_url)
        return Found(endpoints, canonical(server_url), challenge.scope)
    described = await _resource(http, server_url, challenge)
    endpoints = await _endpoints(http, server_url, described.issuer)
    if is_for_user and endpoints.challenge_methods is not None and "S256" not in endpoints.challenge_methods:
        raise OAuthError(f"{endpoints.issuer} does not support PKCE with S256, without which a code could be stolen")
    endpoints = replace(
        endpoints,
        authorize=settings.authorization_url or endpoints.authorize,
        token=settings.token_url or endpoints.token,
    )
    scope = challenge.scope or described.scope or " ".join(endpoints.scopes) or None
    if scope is not None and is_for_user and "offline_access" in endpoints.scopes:
        scope = union(scope, "offline_access")
    return Found(endpoints, described.resource, scope)


def canonical(server_url: str) -> str:
    """Return the address of an MCP server as the name of a resource: in small letters, without query and fragment."""
    parts = urlsplit(server_url)
    netloc = parts.netloc.rpartition("@")[2].lower()
    return parts._replace(scheme=parts.scheme.lower(), netloc=netloc, query="", fragment="").geturl()


async def _resource(http: OAuthHttp, server_url: str, challenge: Challenge) -> _Resource:
    own = canonical(server_url)
    what = "the resource metadata"
    failed: str | None = None
    for url in resource_urls(server_url, challenge):
        answer = await http.get(url, what)
        if answer.status >= 500 or answer.status == 429:
            failed = f"{what} {place(url)} answered HTTP {answer.status}"
            continue
        values = _object(answer.value) if answer.status == 200 else None
        if values is None:
            continue
        issuers = _strings(values.get("authorization_servers"))
        if not issuers:
            continue
        named = values.get("resource")
        if isinstance(named, str) and not is_part_of(own, named):
            raise OAuthError(f"{place(url)} describes {named}; expected {own}")
        scopes = _strings(values.get("scopes_supported"))
        return _Resource(named if isinstance(named, str) else own, issuers[0], " ".join(scopes or ()) or None)
    if failed is not None:
        # A failure does not say that there is none: the old way would lead elsewhere.
        raise OAuthError(failed)
    return _Resource(own)


async def _endpoints(http: OAuthHttp, server_url: str, issuer: str | None) -> Endpoints:
    parts = urlsplit(server_url)
    base = issuer or f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    if (published := await _published(http, base)) is not None:
        return published
    if issuer is not None:
        raise OAuthError(f"{issuer} publishes no metadata; set oauth.authorizationUrl and oauth.tokenUrl")
    return Endpoints(
        urljoin(base, "/authorize"), urljoin(base, "/token"), issuer=base, register=urljoin(base, "/register")
    )


async def issuer_endpoints(http: OAuthHttp, issuer: str) -> Endpoints:
    """Return the endpoints that an issuer publishes.

    Raises:
        OAuthError: there are none.
    """
    published = await _published(http, issuer)
    if published is None:
        raise OAuthError(f"{issuer} publishes no metadata; set tokenUrl")
    return published


async def _published(http: OAuthHttp, base: str) -> Endpoints | None:
    what = "the authorization server's metadata"
    http.require(base, "the authorization server")
    for url in metadata_urls(base):
        answer = await http.get(url, what)
        if answer.status >= 500 or answer.status == 429:
            raise OAuthError(f"{what} {place(url)} answered HTTP {answer.status}")
        values = _object(answer.value) if answer.status == 200 else None
        if values is None or not isinstance(values.get("token_endpoint"), str):
            continue
        named = str(values.get("issuer"))
        if not is_same_issuer(named, base):
            raise OAuthError(f"{place(url)} says that it is of the issuer {named}; expected {base}")
        return read_metadata(values)
    return None


def resource_urls(server_url: str, challenge: Challenge) -> Sequence[str]:
    """Return possible URLs of RFC 9728's metadata, in the order in which they are tried."""
    parts = urlsplit(server_url)
    base = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/.well-known/oauth-protected-resource"
    path = parts.path if parts.path != "/" else ""
    return list(dict.fromkeys(url for url in (challenge.resource_metadata, f"{base}{path}", base) if url))


def metadata_urls(issuer: str) -> Sequence[str]:
    """Return possible URLs of an issuer's metadata: RFC 8414, and OpenID Connect with the path in both places."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    urls = [
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}/.well-known/openid-configuration{path}",
        f"{base}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(urls))


def read_metadata(values: Mapping[str, Any]) -> Endpoints:
    """Return an authorization server's metadata; one for machines alone has no authorization endpoint."""
    authorize = values.get("authorization_endpoint")
    return Endpoints(
        authorize if isinstance(authorize, str) else "",
        str(values["token_endpoint"]),
        issuer=_text(values.get("issuer")),
        register=_text(values.get("registration_endpoint")),
        revoke=_text(values.get("revocation_endpoint")),
        scopes=tuple(_strings(values.get("scopes_supported")) or ()),
        challenge_methods=_methods(values.get("code_challenge_methods_supported")),
        token_methods=_methods(values.get("token_endpoint_auth_methods_supported")),
        takes_metadata_url=values.get("client_id_metadata_document_supported") is True,
        names_itself=values.get("authorization_response_iss_parameter_supported") is True,
    )


def is_part_of(resource: str, named: str) -> bool:
    """Return whether `named` is the resource itself, or what it lies below at the same host."""
    own, other = urlsplit(canonical(resource)), urlsplit(canonical(named))
    if (own.scheme, own.hostname, own.port) != (other.scheme, other.hostname, other.port):
        return False
    path = f"{own.path.rstrip('/')}/"
    return path.startswith(f"{other.path.rstrip('/')}/")


def _object(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _strings(value: object) -> list[str] | None:
    if not isinstance(value, list):
        return None
    return [item for item in cast("list[object]", value) if isinstance(item, str)]


def _methods(value: object) -> tuple[str, ...] | None:
    found = _strings(value)
    return None if found is None else tuple(found)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
