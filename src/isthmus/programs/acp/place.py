"""The sessions of ACP clients on this machine: their folders and MCP servers, trust, and deletion.

Sessions of an agent behind a server are in :mod:`isthmus.programs.acp.server_place`.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from isthmus.acp.front.place import AskClient
from isthmus.acp.v1.client_requests import (
    PermissionKind,
    PermissionOption,
    PermissionRequest,
    PermissionResponse,
    Selected,
)
from isthmus.acp.v1.content import TextBlock
from isthmus.acp.v1.sessions import CommandServer, McpServer, NamedValue
from isthmus.acp.v1.updates import AcpCallStatus, BlockContent, CallKind, ToolCallState
from isthmus.development_tool import ADDITIONAL_DIRECTORIES
from isthmus.encoding.codec import JsonObject, from_json
from isthmus.mcp_host.config.folder_trust import TrustRule, stated_trust
from isthmus.programs.setup.trust_question import TrustQuestion, open_question
from isthmus.rpc.messages import INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from isthmus.settings.trust.forms import folder_refusal
from isthmus.text.visible import visible_line

if TYPE_CHECKING:
    from isthmus.engine import Engine

FURTHER_NAME = "additionalDirectories"
"""Parameter of requests with the further folders of a session."""

_TRUST = {
    "trust-folder": (TrustRule.FOLDER, PermissionKind.ALLOW_ALWAYS, "Trust this folder"),
    "trust-parent": (TrustRule.PARENT, PermissionKind.ALLOW_ALWAYS, "Trust its parent folder and all folders in it"),
    "distrust": (TrustRule.NOT, PermissionKind.REJECT_ALWAYS, "Don't trust: continue without these"),
    "later": (None, PermissionKind.REJECT_ONCE, "Not now"),
}
_UPDATE = {
    "allow": (True, PermissionKind.ALLOW_ALWAYS, "Allow this, from now on"),
    "refuse": (False, PermissionKind.REJECT_ALWAYS, "Don't allow it: continue without it"),
    "later": (None, PermissionKind.REJECT_ONCE, "Not now"),
}


_ALLOW = "allow"
_FOLDERS = (
    PermissionOption(_ALLOW, "Yes, as long as this agent runs", PermissionKind.ALLOW_ONCE),
    PermissionOption("refuse", "No: continue without them", PermissionKind.REJECT_ONCE),
)


class LocalPlace:
    """Sessions of an agent in this process. Without its ``engine`` they cannot be deleted and copied here."""

    def __init__(self, environment: Mapping[str, str], engine: "Engine | None" = None) -> None:
        self._environment = environment
        self._engine = engine
        self._asked: set[tuple[Path, frozenset[str]]] = set()
        self._allowed: set[str] = set()
        """Further folders in which the user lets agents work."""

    def settings(self, cwd: str, servers: Sequence[McpServer], extra: Sequence[str]) -> JsonObject:
        """Return the AgentSettings of a session.

        Raises:
            RpcError: ``cwd`` is not an absolute path of a folder, or something is not supported.
        """
        folder = absolute_folder(cwd)
        if not Path(folder).is_dir():
            raise RpcError(INVALID_PARAMS, f"cwd: {cwd} is not a folder on this machine; name one that exists")
        workspace = os.path.realpath(folder)
        return {"workspace_path": workspace, **_further(workspace, extra), **server_settings(servers)}

    async def check(self, settings: JsonObject) -> None:
        """Check nothing more."""

    async def before_prompt(self, cwd: str, session_id: str, ask: AskClient) -> None:
        """Have the user decide about what the folder's files bring, if that is open; ask about the same things once."""
        question = await asyncio.to_thread(open_question, Path(cwd), self._environment)
        if question is None:
            return
        asked = (question.folder, frozenset(each.item.digest for each in question.shown))
        if asked in self._asked:
            return
        self._asked.add(asked)
        try:
            await self._ask_about(question, session_id, ask)
        except asyncio.CancelledError:
            self._asked.discard(asked)
            raise

    async def refused_folders(self, cwd: str, folders: Sequence[str], session_id: str, ask: AskClient) -> Sequence[str]:
        """Return the further folders that the user refuses; those that they trust are not asked about."""
        asked = await asyncio.to_thread(self._undecided, cwd, folders)
        if not asked:
            return ()
        lines = [f"Besides {visible_line(cwd)}, it could read and change files in:"]
        lines += [f"  - {visible_line(folder)}{f' ({why})' if why else ''}" for folder, why in asked.items()]
        call = ToolCallState(
            f"folders-{session_id}",
            title="Let the agent work in further folders, which your editor names?",
            kind=CallKind.OTHER.value,
            status=AcpCallStatus.PENDING.value,
            content=(BlockContent(TextBlock("\n".join(lines))),),
        )
        answer = from_json(PermissionResponse, await ask(PermissionRequest(session_id, call, _FOLDERS)))
        if not isinstance(answer.outcome, Selected) or answer.outcome.option_id != _ALLOW:
            return tuple(asked)
        self._allowed.update(asked)
        return ()

    def _undecided(self, cwd: str, folders: Sequence[str]) -> Mapping[str, str | None]:
        """Return the folders about which the user must be asked, with why a project could not name them, if so.

        A further folder is asked about also where the user trusts it: a project's file may have led the editor to it.
        """
        home = Path.home()
        refusals = {
            folder: folder_refusal(Path(cwd), home, folder) for folder in folders if folder not in self._allowed
        }
        return {folder: why for folder, why in refusals.items() if why or not stated_trust(home, Path(folder))}

    async def _ask_about(self, question: TrustQuestion, session_id: str, ask: AskClient) -> None:
        call = ToolCallState(
            f"trust-{session_id}",
            title=question.title,
            kind=CallKind.OTHER.value,
            status=AcpCallStatus.PENDING.value,
            content=(BlockContent(TextBlock("\n".join(question.lines))),),
        )
        choices = _UPDATE if question.is_update else _TRUST
        options = tuple(PermissionOption(name, text, kind.value) for name, (_, kind, text) in choices.items())
        answer = from_json(PermissionResponse, await ask(PermissionRequest(session_id, call, options)))
        if isinstance(answer.outcome, Selected):
            await asyncio.to_thread(_store, question, answer.outcome.option_id)

    async def fork(self, session_id: str, new_session_id: str) -> None:
        """Copy a session with all its tasks."""
        if self._engine is None:
            raise RpcError(METHOD_NOT_FOUND, "sessions of this agent cannot be forked")
        await self._engine.fork_session(session_id, new_session_id)

    async def further_folders(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the further folders with which tasks began."""
        return await self._engine.further_folders(task_ids) if self._engine is not None else {}

    async def delete(self, session_id: str) -> None:
        """Delete a session with all its tasks."""
        if self._engine is None:
            raise RpcError(METHOD_NOT_FOUND, "sessions are deleted by `isthmus tasks delete` here")
        await self._engine.delete_session(session_id)


class HostedPlace(LocalPlace):
    """Sessions of another author's agent on this machine, which itself decides what it reads in a folder."""

    @override
    async def before_prompt(self, cwd: str, session_id: str, ask: AskClient) -> None:
        """Ask nothing."""

    @override
    async def refused_folders(self, cwd: str, folders: Sequence[str], session_id: str, ask: AskClient) -> Sequence[str]:
        """Return none."""
        return ()


def _store(question: TrustQuestion, option: str) -> None:
    """Store the user's answer; another option than those that were offered changes nothing."""
    if question.is_update:
        is_agreed, _, _ = _UPDATE.get(option, (None, None, None))
        if is_agreed is not None:
            question.decide(is_agreed=is_agreed)
        return
    rule, _, _ = _TRUST.get(option, (None, None, None))
    if rule is not None:
        question.state(rule)


def absolute_folder(path: str, name: str = "cwd") -> str:
    """Return a path if it is absolute; ``name`` is its parameter's.

    Raises:
        RpcError: it is not.
    """
    if not Path(path).is_absolute() or "\0" in path:
        raise RpcError(INVALID_PARAMS, f"{name}: expected an absolute path, received {path[:200]!r}")
    return path


def further_settings(extra: Sequence[str]) -> JsonObject:
    """Return the AgentSettings for a session's further folders, each once.

    Raises:
        RpcError: a path is not absolute.
    """
    folders = dict.fromkeys(absolute_folder(folder, FURTHER_NAME) for folder in extra)
    return {ADDITIONAL_DIRECTORIES: list(folders)} if folders else {}


def _further(workspace: str, extra: Sequence[str]) -> JsonObject:
    """Return the same for folders of this machine, without links and those that are in the workspace anyway."""
    places: list[str] = []
    for folder in extra:
        place = os.path.realpath(absolute_folder(folder, FURTHER_NAME))
        if not Path(place).is_dir():
            problem = f"{FURTHER_NAME}: {folder} is not a folder on this machine; name one that exists"
            raise RpcError(INVALID_PARAMS, problem)
        if stated_trust(Path.home(), Path(place)) is False:
            problem = f"{FURTHER_NAME}: you do not trust {place}; `isthmus trust {place}` changes that"
            raise RpcError(INVALID_PARAMS, problem)
        if not Path(place).is_relative_to(workspace):
            places.append(place)
    return further_settings(places)


def server_settings(servers: Sequence[McpServer], refused: str = "") -> JsonObject:
    """Return the AgentSettings for a client's MCP servers, which are used besides the configured ones.

    Raises:
        RpcError: a server is a command, and ``refused`` says why commands are not run.
    """
    own: list[JsonObject] = []
    for server in servers:
        if not isinstance(server, CommandServer):
            own.append({"name": server.name, "url": server.url, **_members("headers", server.headers)})
        elif refused:
            raise RpcError(INVALID_PARAMS, f"mcpServers: {server.name} is a command, {refused}")
        else:
            arguments = list(server.args or ())
            own.append(
                {"name": server.name, "command": server.command, "args": arguments, **_members("env", server.env)}
            )
    return {"mcp_servers": [{"name": "*"}, *own]} if own else {}


def _members(name: str, values: Sequence[NamedValue] | None) -> JsonObject:
    return {name: {item.name: item.value for item in values}} if values else {}
