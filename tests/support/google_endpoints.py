"""Google's endpoints for credentials, on this machine: a token endpoint, a metadata server, IAM, and an MCP server.

Real google-auth code calls them. ``asked`` holds the requests, by the name of the endpoint.
"""

import base64
import contextlib
import json
import socket
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from support.asgi_server import asgi_server
from support.oauth_mcp_server import WHOAMI


@dataclass(slots=True)
class GoogleEndpoints:
    """The endpoints. ``refuses``: the token endpoint issues nothing. ``tokens``: tokens that the MCP server accepts."""

    origin: str
    refuses: bool = False
    seconds: int = 3600
    tokens: set[str] = field(default_factory=set[str])
    asked: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The headers of each request that the MCP server accepted."""

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/token", self._token, methods=["POST"]),
                Route("/", self._metadata),
                Route("/computeMetadata/v1/{path:path}", self._metadata),
                Route("/v1/projects/-/serviceAccounts/{account}", self._id_token, methods=["POST"]),
                Route("/mcp", self._mcp, methods=["POST", "GET", "DELETE"]),
            ]
        )

    def _given(self, kind: str) -> str:
        token = f"{kind}-{len(self.tokens)}"
        self.tokens.add(token)
        return token

    async def _token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        self.asked.setdefault("token", []).append(form)
        if self.refuses:
            return JSONResponse({"error": "invalid_grant", "error_description": "Bad Request"}, status_code=400)
        return JSONResponse({"access_token": self._given("user"), "expires_in": self.seconds, "token_type": "Bearer"})

    async def _metadata(self, request: Request) -> Response:
        path = request.path_params.get("path", "")
        self.asked.setdefault("metadata", []).append(f"{path}?{request.url.query}")
        headers = {"Metadata-Flavor": "Google"}
        if request.headers.get("metadata-flavor") != "Google":
            return Response(status_code=403)
        if path.endswith("/token"):
            found = {"access_token": self._given("machine"), "expires_in": self.seconds, "token_type": "Bearer"}
            return JSONResponse(found, headers=headers)
        if path.startswith("instance/service-accounts/"):
            found = {"email": "machine@project.example", "scopes": ["all"], "aliases": ["default"]}
            return JSONResponse(found, headers=headers)
        text = "googleapis.com" if path.startswith("universe") else "the-project"
        return Response(text, media_type="text/plain", headers=headers)

    async def _id_token(self, request: Request) -> Response:
        self.asked.setdefault("iam", []).append(
            (request.path_params["account"], await request.json(), request.headers["authorization"])
        )
        if request.headers["authorization"].removeprefix("Bearer ") not in self.tokens:
            return JSONResponse({"error": {"code": 401}}, status_code=401)
        payload = (
            base64.urlsafe_b64encode(json.dumps({"exp": time.time() + self.seconds}).encode()).decode().rstrip("=")
        )
        token = f"e30.{payload}.{len(self.tokens)}"
        self.tokens.add(token)
        return JSONResponse({"token": token})

    async def _mcp(self, request: Request) -> Response:
        if request.headers.get("authorization", "").removeprefix("Bearer ") not in self.tokens:
            return Response(status_code=401)
        self.headers.append(dict(request.headers))
        if request.method != "POST":
            return Response(status_code=405)
        message: dict[str, Any] = await request.json()
        result: dict[str, Any]
        match message.get("method"):
            case "initialize":
                info = {"name": "google", "version": "1"}
                result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [WHOAMI]}
            case _:
                return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def write_user(self, path: Path) -> Path:
        """Write the file of ``gcloud auth application-default login``."""
        path.write_text(
            json.dumps(
                {
                    "type": "authorized_user",
                    "client_id": "gcloud",
                    "client_secret": "not so secret",
                    "refresh_token": "the-refresh-token",
                    "quota_project_id": "the-quota-project",
                }
            )
        )
        return path

    def write_account(self, path: Path) -> Path:
        """Write the key of a service account."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_text(
            json.dumps(
                {
                    "type": "service_account",
                    "project_id": "the-project",
                    "private_key_id": "1",
                    "private_key": pem.decode(),
                    "client_email": "me@the-project.iam.gserviceaccount.com",
                    "client_id": "1",
                    "token_uri": f"{self.origin}/token",
                }
            )
        )
        return path


@contextlib.asynccontextmanager
async def google_endpoints() -> AsyncGenerator[GoogleEndpoints]:
    """Start all endpoints."""
    listener = socket.create_server(("127.0.0.1", 0))
    found = GoogleEndpoints(f"http://127.0.0.1:{listener.getsockname()[1]}")
    async with asgi_server(found.app(), listener):
        yield found
