"""/mcp: the MCP servers of the session - how they stand, what they offer, connecting anew, logging in."""

import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import Enum

from isthmus.agent.commands.base import CommandContext, CommandNode, Fail, Say, Steps, argument
from isthmus.amounts import show_count
from isthmus.tools.servers import ServerState, ServerStatus

NONE_CONFIGURED = (
    "No MCP servers are configured. They stand under mcpServers in ~/.gemini/settings.json or the project's"
    " .gemini/settings.json."
)


class Detail(Enum):
    """How much is told of each tool."""

    NAMES = "names"
    DESCRIPTIONS = "descriptions"
    SCHEMAS = "schemas"


async def names(context: CommandContext) -> Steps:
    """Each server and the names of its tools."""
    yield Say(_told(await _servers(context), Detail.NAMES))


async def descriptions(context: CommandContext) -> Steps:
    """Each server with its description and those of its tools."""
    yield Say(_told(await _servers(context), Detail.DESCRIPTIONS))


async def schemas(context: CommandContext) -> Steps:
    """The same with the schemas of the tools' parameters."""
    yield Say(_told(await _servers(context), Detail.SCHEMAS))


async def refresh(context: CommandContext) -> Steps:
    """Connect anew and list anew, and say what came and went."""
    servers = context.resources.servers
    if servers is None:
        yield Say(NONE_CONFIGURED)
        return
    name = context.args.strip() or None
    before = {status.name: status for status in await _servers(context)}
    await servers.refresh(context.scope, name)
    after = [status for status in await _servers(context) if name is None or status.name == name]
    lines = [_told(after, Detail.NAMES)]
    for status in after:
        known = {tool.name for tool in before[status.name].tools} if status.name in before else set[str]()
        now = {tool.name for tool in status.tools}
        lines += [f"{status.name}: + {name}" for name in sorted(now - known)]
        lines += [f"{status.name}: - {name}" for name in sorted(known - now)]
    yield Say("\n".join(lines))


async def auth(context: CommandContext) -> Steps:
    """Log in to a server; without a name, say which need it."""
    servers, name = context.resources.servers, context.args.strip()
    if servers is None:
        yield Say(NONE_CONFIGURED)
        return
    if not name:
        waiting = [
            status.name for status in await servers.servers(context.scope) if status.state is ServerState.NEEDS_LOGIN
        ]
        listed = ", ".join(waiting)
        yield Say(f"These need a login: {listed}. /mcp auth NAME starts it." if waiting else "No server needs a login.")
        return
    if context.session.user:
        # The login is kept for the account, and used by everybody.
        yield Fail("Only the person who runs this server logs it in to MCP servers.", "not_yours")
        return
    told = False
    async with aclosing(servers.login(context.scope, name)) as progress:
        async for text in progress:
            told = True
            yield Say(text if text.endswith("\n") else f"{text}\n", is_afresh=True)
    if not told:
        yield Fail(f"The login to {name} ended without a word of how.", "login_failed")


async def _servers(context: CommandContext) -> Sequence[ServerStatus]:
    servers = context.resources.servers
    found = () if servers is None else await servers.servers(context.scope)
    # Commands and folders of this machine are for the person it belongs to.
    return [replace(status, summary=()) for status in found] if context.session.user else found


def _told(servers: Sequence[ServerStatus], detail: Detail) -> str:
    if not servers:
        return NONE_CONFIGURED
    is_done = all(status.state is not ServerState.CONNECTING for status in servers)
    state = f"Discovery State: {'COMPLETED' if is_done else 'IN_PROGRESS'}"
    return "\n\n".join([*(_server(status, detail) for status in servers), state])


def _server(status: ServerStatus, detail: Detail) -> str:
    transport = f" ({status.transport})" if status.transport else ""
    lines = [f"{status.name}{transport}: {status.state}, {show_count(len(status.tools), 'tool')}"]
    lines += [f"  {line}" for line in status.summary]
    if status.problem:
        is_error = status.state is ServerState.DISCONNECTED
        lines.append(f"  {'Error: ' if is_error else ''}{status.problem}")
    if detail is not Detail.NAMES and status.description:
        lines.append(f"  {status.description}")
    for tool in status.tools:
        described = f": {tool.description.strip()}" if detail is not Detail.NAMES and tool.description.strip() else ""
        lines.append(f"  - {tool.name}{described}")
        if detail is Detail.SCHEMAS:
            schema = json.dumps(dict(tool.parameters), indent=2, ensure_ascii=False)
            lines += [f"      {line}" for line in schema.splitlines()]
    if status.prompts:
        lines.append(f"  prompts: {', '.join(status.prompts)}")
    if status.resources:
        lines.append(f"  resources: {', '.join(status.resources)}")
    return "\n".join(lines)


_SERVER = argument("server", "The name of one server; all without it")

COMMAND = CommandNode(
    "mcp",
    "Show and manage the MCP servers of this session",
    names,
    sub_commands=(
        CommandNode("list", "List the servers and the names of their tools", names),
        CommandNode("desc", "List them with descriptions", descriptions),
        CommandNode("schema", "List them with the schemas of their tools", schemas),
        CommandNode("refresh", "Connect anew and list the tools anew", refresh, (_SERVER,)),
        CommandNode("auth", "Log in to a server", auth, (argument("server", "The name of the server"),)),
    ),
)
