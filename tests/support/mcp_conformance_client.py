"""The client of the MCP project's conformance suite: the MCP host of Isthmus, driven for one scenario.

``python mcp_conformance_client.py URL``, with the scenario in MCP_CONFORMANCE_SCENARIO and its data (clients,
keys, calls to make) as JSON in MCP_CONFORMANCE_CONTEXT. It connects, logs in as a user with a browser does, lists, and
calls tools; all traffic comes from the host. The suite judges that traffic, so the results of calls are only
printed.
"""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.errors import IsthmusError
from isthmus.mcp_host.contents import HostContents
from isthmus.mcp_host.host import HostOptions, McpHost
from isthmus.mcp_host.resource_tools import RESOURCE_TOOLS
from isthmus.tools.port.base import Approved, CallContext, Tool, ToolResult, full_parameters_of
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope, ToolSet
from isthmus.tools.port.user_question import Chosen, Reply, UserQuestion
from isthmus.tools.port.workspace import Workspace

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: Mapping[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
NAME = "conformance"
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The client metadata document that the suite expects, for clients that have one."""
MAXIMUM_LOGINS = 3
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {"add_numbers": {"a": 5, "b": 3}}
"""Arguments of tools that need specific ones."""


def server(url: str, home: Path) -> dict[str, Any]:
    """Return the server's entry in the settings file, with the scenario's data."""
    oauth: dict[str, Any] = {}
    if SCENARIO == "auth/basic-cimd":
        oauth["clientMetadataUrl"] = DOCUMENT
    if "client_id" in CONTEXT:
        oauth["clientId"] = CONTEXT["client_id"]
    if "client_secret" in CONTEXT:
        oauth["clientSecret"] = CONTEXT["client_secret"]
    if SCENARIO.startswith("auth/client-credentials"):
        oauth["grantType"] = "client_credentials"
    if "private_key_pem" in CONTEXT:
        key = home / "key.pem"
        key.write_text(CONTEXT["private_key_pem"], encoding="utf-8")
        key.chmod(0o600)
        oauth["privateKeyFile"] = str(key)
        oauth["signingAlgorithm"] = CONTEXT.get("signing_algorithm", "ES256")
    if "idp_id_token" in CONTEXT:
        token = home / "id-token"
        token.write_text(CONTEXT["idp_id_token"], encoding="utf-8")
        token.chmod(0o600)
        oauth["grantType"] = "id_jag"
        oauth["identity"] = {
            "idTokenFile": str(token),
            "tokenUrl": CONTEXT["idp_token_endpoint"],
            "clientId": CONTEXT["idp_client_id"],
        }
    return {"httpUrl": url, "oauth": oauth, "trust": True}


def browser(url: str) -> bool:
    """Open the page of a login and follow it back to this machine."""
    with contextlib.suppress(urllib.error.URLError), urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310
        answer.read()
    return True


async def log_in(host: McpHost, scope: ToolScope) -> bool:
    """Log in; return False if that failed. A stored login that has expired is tried again, as a user would."""
    try:
        async for line in host.login(scope, NAME):
            print(line)
    except ToolFailure as failure:
        print(f"login failed: {failure}")
        return "not connected after the login" in str(failure)
    return True


async def tools_of(host: McpHost, scope: ToolScope) -> Mapping[str, Tool]:
    """Return the server's tools, after a login where it needs one."""
    tools = (await host.tools(scope)).tools
    for _ in range(MAXIMUM_LOGINS):
        (status,) = await host.servers(scope)
        if status.state is not ServerState.NEEDS_LOGIN:
            print(f"{status.state}: {status.problem}")
            break
        if not await log_in(host, scope):
            break
        tools = (await host.tools(scope)).tools
    return {name: tool for name, tool in tools.items() if name not in RESOURCE_TOOLS}


async def call(host: McpHost, scope: ToolScope, name: str, arguments: Mapping[str, Any]) -> None:
    """Call a tool; if it needs a login with more scopes, log in and call it again, a few times at most."""
    for _ in range(MAXIMUM_LOGINS):
        tool = (await host.tools(scope)).tools.get(name)
        if tool is None:
            print(f"there is no tool {name}")
            return
        try:
            print(f"{name}: {await run(tool, arguments, scope.workspace)}")
        except ToolFailure as failure:
            print(f"{name} failed: {failure} ({failure.category})")
            if failure.category == "mcp_needs_login" and await log_in(host, scope):
                continue
        except IsthmusError as error:
            print(f"{name} failed: {error}")
        return


async def accept(question: UserQuestion, withdrawn: "asyncio.Future[str] | None" = None) -> Reply:
    """Accept a server's question with its proposed values."""
    (option, *_) = sorted(question.accepting)
    return Chosen(option)


async def run(tool: Tool, arguments: Mapping[str, Any], workspace: Path) -> ToolResult:
    """Call a tool as a turn does; the server's questions are accepted with their proposed values."""
    context = CallContext(Workspace(workspace), "call-1", workspace.parent / "outputs", {}, ask=accept)
    approved = Approved(await tool.propose(arguments, context))
    return await tool.run(arguments, replace(context, approved=approved))


def arguments_for(tool: Tool) -> Mapping[str, Any]:
    """Return arguments that fit a tool's schema."""
    if tool.name in ARGUMENTS:
        return ARGUMENTS[tool.name]
    samples: dict[str, Any] = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    properties: Mapping[str, Any] = tool.parameters.get("properties") or {}
    required: Sequence[str] = tool.parameters.get("required") or ()
    return {name: samples.get(str(properties.get(name, {}).get("type")), "x") for name in required}


async def drive(host: McpHost, scope: ToolScope) -> None:
    """Do the steps of the scenario."""
    tools = await tools_of(host, scope)
    print(f"tools: {', '.join(tools)}")
    if "toolCalls" in CONTEXT:
        for wanted in CONTEXT["toolCalls"]:
            await call(host, scope, wanted["name"], wanted["arguments"])
        return
    if SCENARIO == "initialize":
        return
    if SCENARIO == "json-schema-2020-12-preservation":
        (focal,) = [tool for name, tool in tools.items() if name != "json_schema_echo"]
        await call(host, scope, "json_schema_echo", {"schema": dict(full_parameters_of(focal))})
        return
    await asyncio.gather(*(call(host, scope, name, arguments_for(tool)) for name, tool in tools.items()))
    contents = HostContents(host)
    for status in await host.servers(scope):
        for prompt in status.prompts:
            with contextlib.suppress(IsthmusError):
                print(await contents.get_prompt(scope, NAME, prompt, {}, scope.workspace))
        for uri in status.resources:
            with contextlib.suppress(IsthmusError):
                print(await contents.read_resource(scope, NAME, uri, scope.workspace))


async def main(url: str) -> None:
    """Run the scenario."""
    with tempfile.TemporaryDirectory() as folder:
        home, workspace = Path(folder) / "home", Path(folder) / "work"
        (home / ".gemini").mkdir(parents=True)
        workspace.mkdir()
        settings = json.dumps({"mcpServers": {NAME: server(url, home)}})
        (home / ".gemini" / "settings.json").write_text(settings, encoding="utf-8")
        options = HostOptions(home, dict(os.environ), wait_seconds=90, open_browser=browser)
        host = McpHost(ToolSet(), options)
        try:
            await drive(host, ToolScope(workspace))
        finally:
            await host.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
