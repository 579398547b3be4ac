"""Discovery of the authorization server of an MCP server: RFC 9728, then RFC 8414 or OpenID Connect Discovery.

The MCP SDK provides the possible addresses of metadata and the comparison of issuers and resources. The metadata
themselves are read here, more leniently than by the SDK's types. Configured endpoints (``authorizationUrl``,
``tokenUrl``) are not discovered. A server of MCP's revision 2025-03-26, which publishes no metadata, has its endpoints
at ``/authorize``, ``/token`` and ``/register``.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from isthmus.mcp_host.config.oauth_settings import OAuthSettings
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.http import OAuthHttp, place
from isthmus.mcp_host.oauth.messages import Challenge, Endpoints, union
from isthmus.mcp_host.sdk import import_with_sdk
from isthmus.record import record

_SDK = "mcp.client.auth.utils"
"""The SDK's module for logins."""


@record
class Found:
    """The data for a login. ``resource`` is the token's resource (RFC 8707), ``scope`` the scope for the server."""

    endpoints: Endpoints
    resource: str
    scope: str | None = None


@record
class _Resource:
    resource: str
    issuer: str | None = None
    scope: str | None = None


async def discover(
    http: OAuthHttp, server_url: str, settings: OAuthSettings, challenge: Challenge, *, is_for_user: bool = True
) -> Found:
    """Return the endpoints to log in at, as a user or as a machine.

    Raises:
        OAuthError: they cannot be found, or the published metadata are contradictory.
    """
    if settings.token_url and (settings.authorization_url or not is_for_user):
        endpoints = Endpoints(settings.authorization_url or "", settings.token_url)
        return Found(endpoints, canonical(server_url), challenge.scope)
    await import_with_sdk(_SDK)
    described = await _resource(http, server_url, challenge)
    endpoints = await _endpoints(http, server_url, described.issuer)
    if is_for_user and endpoints.challenge_methods is not None and "S256" not in endpoints.challenge_methods:
        raise OAuthError(f"{endpoints.issuer} does not support PKCE with S256, which protects the code from theft")
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
    """Return the address of an MCP server as a resource name: with a lower-case host, without query and fragment."""
    parts = urlsplit(server_url)
    netloc = parts.netloc.rpartition("@")[2].lower()
    return parts._replace(scheme=parts.scheme.lower(), netloc=netloc, query="", fragment="").geturl()


async def _resource(http: OAuthHttp, server_url: str, challenge: Challenge) -> _Resource:
    from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls

    own = canonical(server_url)
    what = "the resource metadata"
    failed: str | None = None
    urls = build_protected_resource_metadata_discovery_urls(challenge.resource_metadata, own)
    for url in dict.fromkeys(urls):
        answer = await http.get(url, what)
        if answer.status >= 500 or answer.status == 429:
            failed = f"{what} {place(url)} answered HTTP {answer.status}"
            continue
        values = answer.document
        issuers = _strings(values.get("authorization_servers"))
        if not issuers:
            continue
        named = values.get("resource")
        if isinstance(named, str) and not _includes(named, own):
            raise OAuthError(f"{place(url)} describes {named}; expected {own}")
        scopes = _strings(values.get("scopes_supported"))
        return _Resource(named if isinstance(named, str) else own, issuers[0], " ".join(scopes or ()) or None)
    if failed is not None:
        # A failure does not mean that there are no metadata, so do not fall back to the old default endpoints.
        raise OAuthError(failed)
    return _Resource(own)


def _includes(resource: str, own: str) -> bool:
    """Return whether a resource is the server `own`, or one of its parent paths on the same host."""
    from mcp.shared.auth_utils import check_resource_allowed

    try:
        return check_resource_allowed(own, canonical(resource))
    except ValueError:  # such as https://[
        return False


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
        OAuthError: the issuer publishes no metadata.
    """
    await import_with_sdk(_SDK)
    published = await _published(http, issuer)
    if published is None:
        raise OAuthError(f"{issuer} publishes no metadata; set tokenUrl")
    return published


async def _published(http: OAuthHttp, base: str) -> Endpoints | None:
    from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls, issuers_match

    what = "the authorization server's metadata"
    http.require(base, "the authorization server")
    for url in build_oauth_authorization_server_metadata_discovery_urls(base, base):
        answer = await http.get(url, what)
        if answer.status >= 500 or answer.status == 429:
            raise OAuthError(f"{what} {place(url)} answered HTTP {answer.status}")
        values = answer.document
        if not isinstance(values.get("token_endpoint"), str):
            continue
        named = str(values.get("issuer"))
        if not issuers_match(named, base):
            raise OAuthError(f"{place(url)} names the issuer {named}; expected {base}")
        return _read_metadata(values)
    return None


def _read_metadata(values: Mapping[str, Any]) -> Endpoints:
    """Return an authorization server's endpoints; a server only for machines has no authorization endpoint."""
    authorize = values.get("authorization_endpoint")
    return Endpoints(
        authorize if isinstance(authorize, str) else "",
        str(values["token_endpoint"]),
        issuer=_text(values.get("issuer")),
        register=_text(values.get("registration_endpoint")),
        revoke=_text(values.get("revocation_endpoint")),
        scopes=_strings(values.get("scopes_supported")) or (),
        challenge_methods=_strings(values.get("code_challenge_methods_supported")),
        token_methods=_strings(values.get("token_endpoint_auth_methods_supported")),
        takes_metadata_url=values.get("client_id_metadata_document_supported") is True,
        names_itself=values.get("authorization_response_iss_parameter_supported") is True,
    )


def _strings(value: object) -> tuple[str, ...] | None:
    if not isinstance(value, list):
        return None
    return tuple(item for item in cast("list[object]", value) if isinstance(item, str))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
