"""Our client at an authorization server: configured, described by a metadata document, or registered.

A stored registration is used again only if the server still knows it: many servers forget registrations, and report it
only on a page for the user, from which the login cannot continue.
"""

from isthmus.mcp_host.config.server_config import ServerConfig
from isthmus.mcp_host.connection.errors import OAuthError
from isthmus.mcp_host.oauth.http import OAuthHttp, place
from isthmus.mcp_host.oauth.messages import (
    FORGOTTEN_CODES,
    Endpoints,
    OAuthClient,
    authenticated,
    refresh_form,
    registered,
    registration,
    said,
)
from isthmus.mcp_host.oauth.store import Registration
from isthmus.mcp_host.oauth.stored_login import client_of


async def client_for(
    http: OAuthHttp,
    config: ServerConfig,
    endpoints: Endpoints,
    redirect_uri: str,
    scope: str | None,
    kept: Registration | None,
) -> Registration:
    """Return the client to log in with; register a client if none is known.

    Raises:
        OAuthError: no client is known, and the server does not register clients.
    """
    configured = client_of(config, endpoints)
    if configured is not None:
        return Registration(configured, endpoints.issuer, redirect_uri)
    document = config.oauth.client_metadata_url
    if document is not None and endpoints.takes_metadata_url:
        if not document.startswith("https://"):
            raise OAuthError(f"oauth.clientMetadataUrl {document}: expected https://")
        return Registration(OAuthClient(document), endpoints.issuer, redirect_uri)
    is_same = kept is not None and (kept.issuer, kept.redirect_uri) == (endpoints.issuer, redirect_uri)
    if kept is not None and is_same and await _is_known(http, endpoints, kept.client):
        return kept
    if endpoints.register is None:
        raise OAuthError(
            f"{endpoints.issuer or place(endpoints.authorize)} does not register clients automatically; register one "
            f"there with the redirect URI {redirect_uri} and set oauth.clientId"
        )
    what = "the registration endpoint"
    answer = await http.post(endpoints.register, what, body=registration(redirect_uri, scope))
    values = answer.object
    if answer.status not in (200, 201):
        reason = f": {said(values)}" if values else ""
        raise OAuthError(
            f"{what} {place(endpoints.register)} answered HTTP {answer.status}{reason}; register a client there with "
            f"the redirect URI {redirect_uri} and set oauth.clientId"
        )
    client = registered(values)
    if client is None:
        raise OAuthError(f"the answer of {what} {place(endpoints.register)} contains no client_id")
    return Registration(client, endpoints.issuer, redirect_uri)


async def _is_known(http: OAuthHttp, endpoints: Endpoints, client: OAuthClient) -> bool:
    """Return whether a server still knows a client, by its answer to the renewal of a token that does not exist."""
    form, headers = authenticated(refresh_form("none", endpoints.issuer or "", ()), client)
    try:
        answer = await http.post(endpoints.token, "the token endpoint", form=form, headers=headers)
    except OAuthError:
        return False
    return answer.object.get("error") not in FORGOTTEN_CODES and answer.status < 500
