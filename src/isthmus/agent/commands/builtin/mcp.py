"""/mcp: shows the MCP servers of the session and their tools, reconnects, logs in, and switches servers on and off.

The listing is laid out in :mod:`isthmus.agent.commands.builtin.server_listing`.
"""

import difflib
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from isthmus.agent.commands.builtin.server_listing import NONE_CONFIGURED, Detail, listing
from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import DiscoveryState, ServerState, ServerStatus


async def names(context: CommandContext) -> None:
    """List the servers and the names of their tools."""
    await context.say(await _listing(context, Detail.NAMES))


async def descriptions(context: CommandContext) -> None:
    """List the servers and their tools with descriptions."""
    await context.say(await _listing(context, Detail.DESCRIPTIONS))


async def schemas(context: CommandContext) -> None:
    """List the servers with descriptions and the schemas of the tools' parameters."""
    await context.say(await _listing(context, Detail.SCHEMAS))


async def refresh(context: CommandContext) -> None:
    """Reconnect and list the tools again, and print which were added and removed."""
    servers = context.resources.servers
    if servers is None:
        await context.say(NONE_CONFIGURED)
        return
    name = context.args.strip() or None
    before = await _servers(context)
    await servers.refresh(context.scope, name)
    await context.say(await _changes(context, before, name))


async def restart(context: CommandContext) -> None:
    """Stop one server, whatever it is doing, and reconnect to it."""
    servers, name = context.resources.servers, context.args.strip()
    if servers is None:
        await context.say(NONE_CONFIGURED)
        return
    if context.session.user:
        message = "Only the user who runs this server can restart its MCP servers, since others may be using them."
        raise CommandError(message, _NOT_LOCAL_USER)
    before = await _servers(context)
    await servers.restart(context.scope, name)
    await context.say(await _changes(context, before, name))


async def enable(context: CommandContext) -> None:
    """Use a server that was switched off."""
    await _switch(context, is_enabled=True)


async def disable(context: CommandContext) -> None:
    """Switch a server off, in this and in future sessions."""
    await _switch(context, is_enabled=False)


async def _switch(context: CommandContext, *, is_enabled: bool) -> None:
    servers, name = context.resources.servers, context.args.strip()
    if servers is None:
        await context.say(NONE_CONFIGURED)
        return
    if context.session.user:
        raise CommandError("Only the user who runs this server can switch its MCP servers on and off.", _NOT_LOCAL_USER)
    before = await _servers(context)
    await servers.set_enabled(context.scope, name, is_enabled=is_enabled)
    await context.say(await _changes(context, before, name))


async def auth(context: CommandContext) -> None:
    """Log in to a server; without a name, list those that need it."""
    servers = context.resources.servers
    name, _, pasted = context.args.strip().partition(" ")
    if servers is None:
        await context.say(NONE_CONFIGURED)
        return
    if not name:
        found = await servers.servers(context.scope)
        waiting = [status.name for status in found if status.state is ServerState.NEEDS_LOGIN]
        listed = "\n".join(f"- {server}" for server in waiting)
        await context.say(
            f"MCP servers that need a login:\n{listed}\n/mcp auth NAME starts it."
            if waiting
            else "No MCP server needs a login."
        )
        return
    if context.session.user:
        # The login is stored for the account and used by all users.
        raise CommandError("Only the user who runs this server can log it in to MCP servers.", _NOT_LOCAL_USER)
    has_progress = False
    steps = servers.paste(context.scope, name, pasted) if pasted.strip() else servers.login(context.scope, name)
    async with aclosing(steps) as progress:
        async for text in progress:
            has_progress = True
            await context.say(text if text.endswith("\n") else f"{text}\n", is_afresh=True)
    if not has_progress:
        raise CommandError(f"The login to {name} ended without a result.", "login_failed")


_NOT_LOCAL_USER = "not_yours"
"""Reason of a refusal: only the local user may do this."""


async def _servers(context: CommandContext) -> Sequence[ServerStatus]:
    servers = context.resources.servers
    found = () if servers is None else await servers.servers(context.scope)
    return [for_others(status) for status in found] if context.session.user else found


def for_others(status: ServerStatus) -> ServerStatus:
    """Return the status without commands, folders and errors, which only the local user may see."""
    if status.problem is None or status.state is ServerState.CONNECTED:
        return replace(status, summary=())
    return replace(status, summary=(), problem="only the user who runs this server can see the reason")


async def _discovery(context: CommandContext) -> DiscoveryState:
    servers = context.resources.servers
    return DiscoveryState.NOT_STARTED if servers is None else await servers.discovery(context.scope)


async def _listing(context: CommandContext, detail: Detail) -> str:
    discovery = await _discovery(context)  # before the listing, which starts discovery
    found, loaded = await _servers(context), context.session.choices.loaded_tools
    if name := context.args.strip():
        named = [status for status in found if status.name == name and not status.is_file]
        if not named:
            known = ", ".join(status.name for status in found if not status.is_file) or "none"
            meant = difflib.get_close_matches(name.split()[0], [each.name for each in COMMAND.sub_commands], n=1)
            hint = f"; did you mean /mcp {meant[0]}?" if meant else ""
            raise ToolFailure(f"no MCP server is named {name!r}; configured: {known}{hint}", "unknown_mcp_server")
        found = named
    offered = {tool.name for status in found for tool in status.tools}
    return listing(found, detail, discovery, None if loaded is None else len(offered.intersection(loaded)))


async def _changes(context: CommandContext, before: Sequence[ServerStatus], name: str | None) -> str:
    """Return the listing of the servers, or of the named one, with added and removed tools."""
    known = {status.name: {tool.name for tool in status.tools} for status in before}
    after = [status for status in await _servers(context) if name is None or status.name == name]
    lines = [listing(after, Detail.NAMES, await _discovery(context))]
    for status in after:
        was, now = known.get(status.name, set()), {tool.name for tool in status.tools}
        lines += [f"{status.name}: + {tool}" for tool in sorted(now - was)]
        lines += [f"{status.name}: - {tool}" for tool in sorted(was - now)]
    return "\n".join(lines)


_SERVER = argument("server", "The name of a server; all servers if omitted")
_ONE_SERVER = argument("server", "The name of the server", is_required=True)

COMMAND = CommandNode(
    "mcp",
    "Show and manage the MCP servers of this session",
    names,
    (_SERVER,),
    sub_commands=(
        CommandNode("list", "List the servers and the names of their tools", names, (_SERVER,)),
        CommandNode("desc", "List them with descriptions", descriptions, (_SERVER,)),
        CommandNode("nodesc", "List them without descriptions", names, (_SERVER,)),
        CommandNode("schema", "List them with the schemas of their tools", schemas, (_SERVER,)),
        CommandNode(
            "auth",
            "Log in to a server; without a name, list those that need it",
            auth,
            (
                argument("server", "The name of the server"),
                argument("address", "The address at which the browser ended, if it runs on another machine"),
            ),
        ),
        CommandNode("refresh", "Reconnect and list the tools again", refresh, (_SERVER,)),
        CommandNode("restart", "Stop a server and start it again, whatever it is doing", restart, (_ONE_SERVER,)),
        CommandNode("enable", "Use a server that was switched off", enable, (_ONE_SERVER,)),
        CommandNode("disable", "Switch a server off, also in future sessions", disable, (_ONE_SERVER,)),
    ),
)
