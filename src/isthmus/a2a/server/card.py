"""The agent card, which clients read first, for A2A 0.3 and 1.0; with the development-tool extension (section 3.1).

The public card must not contain anything that needs a token.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from email.utils import formatdate, parsedate_to_datetime
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from isthmus.a2a.options import Identity, ServerOptions, Skill
from isthmus.a2a.protocol.extension import DEFAULT_WORKSPACE, DESCRIPTION, TAKES_MESSAGES_ONCE, URI
from isthmus.a2a.server.framing import json_response
from isthmus.a2a.v1.wire import is_version
from isthmus.a2a.wire import Caller
from isthmus.client import AgentClient, CommandScope, TaskError
from isthmus.development_tool import SlashCommand
from isthmus.encoding.codec import JsonObject, to_json
from isthmus.encoding.json_text import encode

CACHED_SECONDS = 60
"""Time in seconds that clients may cache the card; short, as a restarted server may have other options."""
PORT_KEY = "isthmus.port"
"""Key of the port that the server listens on, in the ASGI scope of a request."""
_PORT = re.compile(r":[0-9]{1,5}\Z")
_BEARER: Mapping[str, JsonObject] = MappingProxyType({"bearer": {"type": "http", "scheme": "bearer"}})
_SCHEME_MEMBERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "apiKey": ("apiKeySecurityScheme", {"in": "location", "name": "name"}),
    "http": ("httpAuthSecurityScheme", {"scheme": "scheme", "bearerFormat": "bearerFormat"}),
    "oauth2": ("oauth2SecurityScheme", {"flows": "flows", "oauth2MetadataUrl": "oauth2MetadataUrl"}),
    "openIdConnect": ("openIdConnectSecurityScheme", {"openIdConnectUrl": "openIdConnectUrl"}),
    "mutualTLS": ("mtlsSecurityScheme", {}),
}
"""Member of 1.0 for each type of 0.3, and the names of its fields in both."""


def agent_card(url: str, identity: Identity, *, has_push: bool = False, version: str | None = None) -> dict[str, Any]:
    """Return the card of the server at ``url``, with the members of ``version``, by default of all versions."""
    versions = identity.versions if version is None else (version,)
    schemes = _BEARER if identity.security_schemes is None else identity.security_schemes
    rest = url.rstrip("/")
    card: dict[str, Any] = {}
    capabilities: dict[str, Any] = {"streaming": True, "pushNotifications": has_push}
    if "0.3" in versions:
        card |= {
            "protocolVersion": "0.3.0",
            "url": url,
            "preferredTransport": "JSONRPC",
            "additionalInterfaces": [
                {"url": url, "transport": "JSONRPC"},
                {"url": rest, "transport": "HTTP+JSON"},
            ],
            "security": [{name: []} for name in schemes],
            "supportsAuthenticatedExtendedCard": bool(schemes),
        }
        capabilities["stateTransitionHistory"] = False
    if "1.0" in versions:
        card |= {
            "supportedInterfaces": [
                {"url": place, "protocolBinding": binding, "protocolVersion": spoken}
                for spoken in ("1.0", "0.3")
                for place, binding in ((url, "JSONRPC"), (rest, "HTTP+JSON"))
            ],
            "securityRequirements": [{"schemes": {name: {"list": []}}} for name in schemes],
        }
        capabilities["extendedAgentCard"] = bool(schemes)
    extension = {
        "uri": URI,
        "description": DESCRIPTION,
        "required": identity.extension_required,
        "params": {TAKES_MESSAGES_ONCE: True} | ({DEFAULT_WORKSPACE: True} if identity.default_workspace else {}),
    }
    return {
        "name": identity.name,
        "description": identity.description,
        "version": identity.version,
        **card,
        "capabilities": {**capabilities, "extensions": [extension]},
        "securitySchemes": {name: _security_scheme(scheme, versions) for name, scheme in schemes.items()},
        "defaultInputModes": list(identity.input_modes),
        "defaultOutputModes": list(identity.output_modes),
        "skills": [_skill(skill, identity) for skill in identity.skills or (_whole_agent(identity),)],
    }


def card_of_request(
    request: Request, options: ServerOptions, *, has_push: bool, version: str | None = None
) -> dict[str, Any]:
    """Return the public card for a request, with the members of the version that it states, otherwise of both.

    Its URL is the one that the client used, with the path at which the application is mounted.
    """
    stated = version or version_of(request)
    only = next(
        (known for known in options.identity.versions if stated is not None and is_version(stated, known)), None
    )
    return agent_card(card_url(request, options), options.identity, has_push=has_push, version=only)


def card_url(request: Request, options: ServerOptions) -> str:
    """Return the URL of the server for its card.

    The port is the one that the server listens on, if known: the Host header may contain any other.
    """
    if options.public_url is not None:
        return options.public_url
    mount = quote(request.scope.get("root_path", "").rstrip("/"), safe="/")
    scheme, host = request.url.scheme, request.headers["host"]
    port = request.scope.get(PORT_KEY)
    if port is not None:
        default = 443 if scheme == "https" else 80
        host = _PORT.sub("", host) + ("" if port == default else f":{port}")
    return f"{scheme}://{host}{mount}/"


def version_of(request: Request) -> str | None:
    """Return the A2A version in a header or query parameter of a request (A2A 1.0, section 3.6.1), or None."""
    stated = request.headers.get("a2a-version")
    if not stated and request.scope["query_string"]:
        stated = next((value for name, value in request.query_params.items() if name.lower() == "a2a-version"), None)
    return stated or None


def card_response(card: Mapping[str, Any], asked: Mapping[str, str], changed: float) -> Response:
    """Return the response to a request for the public card (A2A 1.0, section 8.6).

    ``asked`` are the headers of the request. ``changed`` is the Unix time when the server started, as the card may have
    changed then.
    """
    body = encode(card)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {
        "Cache-Control": f"public, max-age={CACHED_SECONDS}",
        "ETag": tag,
        "Last-Modified": formatdate(changed, usegmt=True),
        "Vary": "A2A-Version",
    }
    known = asked.get("if-none-match")
    if known is not None:
        is_known = tag in (each.strip().removeprefix("W/") for each in known.split(","))
    else:
        is_known = _is_since(asked.get("if-modified-since"), changed)
    if is_known:
        return Response(status_code=304, headers=headers)
    return json_response(body, headers=headers)


def _is_since(stated: str | None, changed: float) -> bool:
    """Return whether nothing changed after an HTTP date, which has a resolution of seconds."""
    try:
        return stated is not None and parsedate_to_datetime(stated).timestamp() >= int(changed)
    except (ValueError, OverflowError):
        return False


def _security_scheme(scheme: JsonObject, versions: Collection[str]) -> dict[str, Any]:
    """Return a security scheme, given as in 0.3, with the members that these versions have.

    Raises:
        ValueError: its type is not one of OpenAPI's.
    """
    kind = str(scheme.get("type"))
    if kind not in _SCHEME_MEMBERS:
        raise ValueError(f"the security scheme has the type {kind!r}; expected one of {', '.join(_SCHEME_MEMBERS)}")
    found = dict(scheme) if "0.3" in versions else {}
    if "1.0" in versions:
        member, names = _SCHEME_MEMBERS[kind]
        fields = {new: scheme[old] for old, new in names.items() if old in scheme}
        if "description" in scheme:
            fields["description"] = scheme["description"]
        if kind == "http" and str(fields.get("scheme", "")).lower() == "bearer":
            fields["scheme"] = "Bearer"
        found[member] = fields
    return found


def _whole_agent(identity: Identity) -> Skill:
    """Return the skill of an agent that names none: clients choose agents by skills, and 0.3 wants at least one."""
    word = re.sub(r"[^a-z0-9]+", "_", identity.name.lower()).strip("_") or "agent"
    return Skill(word, identity.name, identity.description, ("agent",))


def _skill(skill: Skill, identity: Identity) -> dict[str, Any]:
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
        "examples": list(skill.examples),
        "inputModes": list(identity.input_modes),
        "outputModes": list(identity.output_modes),
    }


async def extended_card(url: str, caller: Caller, options: ServerOptions, version: str | None = None) -> dict[str, Any]:
    """Return the card for authenticated clients, with the members of one ``version`` if given.

    In addition to the public card, the parameters of the extension have the slash commands (of the server's own
    workspace), the limits, and the user's name and tier.
    """
    parameters: dict[str, Any] = {
        "commands": [to_json(command) for command in await _commands(caller.agent)],
        "limits": {"request_bytes": options.body_limit, "blocking_seconds": options.blocking_limit},
    }
    if caller.name:
        parameters["user"] = caller.name
    if caller.user_tier is not None:
        parameters["user_tier"] = caller.user_tier
    card = agent_card(url, options.identity, has_push=caller.push is not None, version=version)
    extensions = [{**each, "params": {**each["params"], **parameters}} for each in card["capabilities"]["extensions"]]
    return {**card, "capabilities": {**card["capabilities"], "extensions": extensions}}


async def _commands(agent: AgentClient) -> Sequence[SlashCommand]:
    try:
        return await agent.commands(CommandScope())
    except TaskError:
        return ()  # if the server has no workspace, the commands depend on the session
