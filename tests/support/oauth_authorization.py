"""An authorization server for tests: registers clients, makes the checks of OAuth 2.1, renews tokens.

It redirects at once, as if the user had agreed. Its attributes set its behaviour; ``log`` and ``asked`` record
the requests.
"""

import asyncio
import base64
import hashlib
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import urlencode

import jwt
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route


@dataclass(frozen=True, slots=True)
class Issued:
    """A valid token: its scope and when it expires."""

    ends_at: float
    scope: str = ""


@dataclass(slots=True)
class AuthorizationServer:
    """The server: ``origin`` and ``path`` make the issuer, and tokens expire after ``seconds``.

    ``published`` names its kind of metadata. ``rotates``: a refresh token works only once. ``answers_after``: delay of
    the token endpoint in seconds.
    """

    origin: str
    path: str = ""
    seconds: int = 3600
    published: Literal["oauth", "oidc", "oidc appended", "nothing"] = "oauth"
    registers: bool = True
    renews: bool = True
    rotates: bool = True
    answers_after: float = 0.0
    fails_with: int | None = None
    refuses_once: str | None = None
    """An error of RFC 6749 that the token endpoint returns for the next request."""
    takes_documents: bool = False
    sends_issuer: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    """Additional or replaced members of the metadata."""
    log: list[str] = field(default_factory=list[str])
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The parameters of each request to authorize, for a token, to revoke."""
    clients: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    tokens: dict[str, Issued] = field(default_factory=dict[str, Issued])
    refreshing: dict[str, str] = field(default_factory=dict[str, str])
    """Refresh tokens and their scopes."""

    @property
    def issuer(self) -> str:
        return f"{self.origin}{self.path}"

    def holds(self, token: str) -> Issued | None:
        found = self.tokens.get(token)
        return found if found is not None and found.ends_at >= time.time() else None

    def add_client(self, name: str, redirect_uri: str, secret: str | None = None) -> None:
        """Add a client that was registered by hand."""
        self.clients[name] = {"client_id": name, "redirect_uris": [redirect_uri], "client_secret": secret}

    def routes(self) -> list[Route]:
        where = {
            "oauth": f"/.well-known/oauth-authorization-server{self.path}",
            "oidc": f"/.well-known/openid-configuration{self.path}",
            "oidc appended": f"{self.path}/.well-known/openid-configuration",
            "nothing": "/never",
        }
        return [
            *(
                Route(address, self._metadata_if(kind))
                for kind, address in where.items()
                if address not in [where[other] for other in list(where)[: list(where).index(kind)]]
            ),
            Route(f"{self.path}/register", self._register, methods=["POST"]),
            Route(f"{self.path}/authorize", self._authorize),
            Route(f"{self.path}/token", self._token, methods=["POST"]),
            Route(f"{self.path}/revoke", self._revoke, methods=["POST"]),
        ]

    def _metadata_if(self, kind: str) -> Any:
        async def answer(request: Request) -> Response:
            is_same = {kind, self.published} == {"oidc", "oidc appended"} and not self.path
            if self.published != kind and not is_same:
                return Response(status_code=404)
            self.log.append("metadata")
            found: dict[str, Any] = {
                "issuer": self.issuer,
                "authorization_endpoint": f"{self.issuer}/authorize",
                "token_endpoint": f"{self.issuer}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none", "client_secret_post"],
                "revocation_endpoint": f"{self.issuer}/revoke",
                "authorization_response_iss_parameter_supported": self.sends_issuer is not None,
                "client_id_metadata_document_supported": self.takes_documents,
            }
            if self.registers:
                found["registration_endpoint"] = f"{self.issuer}/register"
            return JSONResponse({**found, **self.metadata})

        return answer

    async def _register(self, request: Request) -> Response:
        self.log.append("register")
        if not self.registers:
            return JSONResponse({"error": "access_denied"}, status_code=403)
        name = f"client-{len(self.clients)}-{secrets.token_hex(2)}"
        self.clients[name] = {**await request.json(), "client_id": name}
        return JSONResponse(self.clients[name], status_code=201)

    async def _authorize(self, request: Request) -> Response:
        self.log.append("authorize")
        query = dict(request.query_params)
        self.asked.append(query)
        redirect = query["redirect_uri"]
        if not self._is_client(query["client_id"], redirect):
            return Response("This application is not known here.", status_code=400)
        if query.get("code_challenge_method") != "S256" or query.get("response_type") != "code":
            return Response("PKCE with S256 is needed.", status_code=400)
        code = secrets.token_hex(8)
        self.codes[code] = query
        answer = {"code": code, "state": query["state"]}
        if self.sends_issuer is not None:
            answer["iss"] = self.sends_issuer
        return RedirectResponse(f"{redirect}?{urlencode(answer)}")

    def _is_client(self, name: str, redirect_uri: str | None = None) -> bool:
        if self.takes_documents and name.startswith("https://"):
            return True
        found = self.clients.get(name)
        return found is not None and (redirect_uri is None or redirect_uri in found["redirect_uris"])

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        kind = form["grant_type"]
        self.log.append(kind)
        self.asked.append(form)
        if self.answers_after:
            await asyncio.sleep(self.answers_after)  # delay: the test names how late the answer comes
        if self.fails_with is not None:
            return Response("<h1>Out of order</h1>", status_code=self.fails_with)
        if self.refuses_once is not None:
            error, self.refuses_once = self.refuses_once, None
            return JSONResponse({"error": error}, status_code=400)
        client = form.get("client_id", "")
        known = self.clients.get(client, {})
        if "client_assertion" in form:
            claims = jwt.decode(form["client_assertion"], known["public_key"], ["ES256"], audience=self.issuer)
            assert (claims["iss"], claims["sub"]) == (client, client)
        if not self._is_client(client) or (known.get("client_secret") or None) != form.get("client_secret"):
            return JSONResponse({"error": "invalid_client", "error_description": "unknown client"}, status_code=401)
        if kind == "client_credentials":
            return JSONResponse({**self.issue(form.get("scope", "")), "refresh_token": None})
        if kind == "refresh_token":
            scope = self.refreshing.get(form["refresh_token"])
            if not self.renews or scope is None:
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            if self.rotates:
                del self.refreshing[form["refresh_token"]]
        else:
            asked = self.codes.pop(form["code"], {})
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            same = ("client_id", "redirect_uri", "resource")
            if asked.get("code_challenge") != challenge or any(asked.get(name) != form.get(name) for name in same):
                return JSONResponse({"error": "invalid_grant"}, status_code=400)
            scope = asked.get("scope", "")
        return JSONResponse(self.issue(scope))

    def issue(self, scope: str = "") -> dict[str, Any]:
        """Issue new tokens."""
        token, renewal = secrets.token_hex(16), secrets.token_hex(16)
        self.tokens[token] = Issued(time.time() + self.seconds, scope)
        self.refreshing[renewal] = scope
        found = {"access_token": token, "token_type": "bearer", "expires_in": self.seconds, "refresh_token": renewal}
        return {**found, "scope": scope} if scope else found

    async def _revoke(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.log.append("revoke")
        self.tokens.pop(form["token"], None)
        self.refreshing.pop(form["token"], None)
        return Response(status_code=200)
