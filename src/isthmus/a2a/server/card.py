"""The agent card: what a client reads before it speaks to the server (spec 2, section 3.1), for A2A 0.3 and 1.0.

Deliberately not here: anything that needs a token; the card is public.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from isthmus.a2a.extension import DESCRIPTION, URI
from isthmus.a2a.options import Identity, ServerOptions, Skill
from isthmus.a2a.server.framing import json_response
from isthmus.a2a.wire import Caller
from isthmus.client import AgentClient, CommandScope, TaskError
from isthmus.codec import to_json
from isthmus.development_tool import SlashCommand
from isthmus.json_text import encode

CACHED_SECONDS = 60
"""How long clients may go by a card they have: who restarts a server with other options wants to see that."""
PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Where the card is: of A2A 0.3 and 1.0, and of 0.2."""


def agent_card(url: str, identity: Identity, *, has_push: bool = False) -> dict[str, Any]:
    """The card of the agent's server, which is reached at ``url``: the members of 0.3 and of 1.0 in one."""
    bearer = {"type": "http", "scheme": "bearer", "httpAuthSecurityScheme": {"scheme": "Bearer"}}
    return {
        "protocolVersion": "0.3.0",
        "name": identity.name,
        "description": identity.description,
        "version": identity.version,
        "url": url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "supportedInterfaces": [
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": url.rstrip("/"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
            {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
        ],
        "capabilities": {
            "streaming": True,
            "pushNotifications": has_push,
            "stateTransitionHistory": False,
            "extendedAgentCard": True,
            "extensions": [{"uri": URI, "description": DESCRIPTION, "required": identity.extension_required}],
        },
        "securitySchemes": {"bearer": bearer},
        "security": [{"bearer": []}],
        "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
        "supportsAuthenticatedExtendedCard": True,
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [_skill(skill) for skill in identity.skills],
    }


def card_response(card: Mapping[str, Any], known: str | None) -> Response:
    """The answer to who asks for the public card; ``known`` is its ``If-None-Match`` (A2A 1.0, section 8.6)."""
    body = encode(card)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"Cache-Control": f"public, max-age={CACHED_SECONDS}", "ETag": tag}
    if known is not None and tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    return json_response(body, headers=headers)


def _skill(skill: Skill) -> dict[str, Any]:
    return {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "tags": list(skill.tags),
        "examples": list(skill.examples),
        "inputModes": ["text/plain"],
        "outputModes": ["text/plain", "application/json"],
    }


async def extended_card(url: str, caller: Caller, options: ServerOptions) -> dict[str, Any]:
    """The card for those who have a token.

    It is the public one, and the parameters of the extension tell the slash commands there are (of the server's own
    workspace), the limits that hold, and the user's name and tier.
    """
    parameters: dict[str, Any] = {
        "commands": [to_json(command) for command in await _commands(caller.agent)],
        "limits": {"request_bytes": options.body_limit, "blocking_seconds": options.blocking_limit},
    }
    if caller.name:
        parameters["user"] = caller.name
    if caller.user_tier is not None:
        parameters["user_tier"] = caller.user_tier
    card = agent_card(url, options.identity, has_push=caller.push is not None)
    extensions = [{**each, "params": parameters} for each in card["capabilities"]["extensions"]]
    return {**card, "capabilities": {**card["capabilities"], "extensions": extensions}}


async def _commands(agent: AgentClient) -> Sequence[SlashCommand]:
    try:
        return await agent.commands(CommandScope())
    except TaskError:
        return ()  # the server has no workspace of its own: which commands there are depends on the session
