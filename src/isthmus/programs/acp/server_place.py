"""The sessions of ACP clients whose agent is behind an A2A server: their folders and MCP servers."""

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from isthmus.acp.front.place import AskClient
from isthmus.acp.v1.sessions import McpServer
from isthmus.client import AgentClient, CommandScope, TaskError
from isthmus.development_tool import ADDITIONAL_DIRECTORIES
from isthmus.encoding.codec import JsonObject
from isthmus.network.loopback import another_user_at, is_loopback
from isthmus.programs.acp.place import FURTHER_NAME, absolute_folder, further_settings, server_settings
from isthmus.rpc.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError

_NOT_THERE = "a server on another machine runs no commands of its clients"
_INSTEAD = "configure them where the agent runs, give a url, or run the agent in the editor: `isthmus acp --in-process`"


class ServerPlace:
    """Sessions of an agent behind a server, whose folders and MCP servers are on its machine.

    Only the user's own server on this machine may run commands; it decides that itself. Others are not told of them.
    ``takes_servers``: the agent at ``url`` reads the MCP servers in AgentSettings.
    """

    def __init__(self, agent: AgentClient, url: str, *, takes_servers: bool = True) -> None:
        self._agent = agent
        self._url = urlsplit(url)
        self._takes_servers = takes_servers

    def settings(self, cwd: str, servers: Sequence[McpServer], extra: Sequence[str]) -> JsonObject:
        """Return the AgentSettings of a session; the server decides whether it works in this folder.

        Raises:
            RpcError: ``cwd`` is not an absolute path, or something is not supported.
        """
        if extra and not self._takes_servers:
            raise RpcError(INVALID_PARAMS, f"{FURTHER_NAME}: this server takes none of its clients; expected none")
        refused = "" if is_loopback(self._url.hostname or "") else f"and {_NOT_THERE}: {_INSTEAD}"
        return {"workspace_path": absolute_folder(cwd), **further_settings(extra), **server_settings(servers, refused)}

    async def check(self, settings: JsonObject) -> None:
        """Have the server say whether it takes the further folders of a session, and runs its commands.

        Raises:
            RpcError: it does not, or is not known to be this user's.
        """
        if not any("command" in server for server in settings.get("mcp_servers", ())):
            if settings.get(ADDITIONAL_DIRECTORIES):
                await self._check_folders(settings)
            return
        port = self._url.port
        reason = await asyncio.to_thread(another_user_at, port) if port is not None else None
        if reason is None and not self._takes_servers:
            reason = "this server takes no MCP servers of its clients"
        if reason is None:
            try:
                await self._agent.commands(CommandScope(settings=settings))
            except (TaskError, RpcError) as error:
                reason = str(error)
        if reason is not None:
            raise RpcError(INVALID_PARAMS, f"mcpServers: {reason}. To use commands, {_INSTEAD}")

    async def _check_folders(self, settings: JsonObject) -> None:
        try:
            await self._agent.commands(CommandScope(settings=settings))
        except (TaskError, RpcError) as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error

    async def before_prompt(self, cwd: str, session_id: str, ask: AskClient) -> None:
        """Ask nothing: the server's owner has decided about its folders."""

    async def refused_folders(self, cwd: str, folders: Sequence[str], session_id: str, ask: AskClient) -> Sequence[str]:
        """Return none: the same."""
        return ()

    async def further_folders(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return none: A2A does not tell them."""
        return {}

    async def fork(self, session_id: str, new_session_id: str) -> None:
        """Copy nothing: A2A has no method for it."""
        raise RpcError(METHOD_NOT_FOUND, "sessions of a server cannot be forked")

    async def delete(self, session_id: str) -> None:
        """Delete nothing: A2A has no method for it."""
        raise RpcError(METHOD_NOT_FOUND, "the server's tasks are deleted on its machine, by `isthmus tasks delete`")
