"""The MCP servers in files of other programs, as entries of ``mcpServers``, for ``isthmus mcp import``. Pure.

Only what says how to reach a server is taken over. Nothing that gives it rights is, such as ``trust``: a project's
``.vscode/mcp.json`` was written by a stranger. Not here: the questions to the user, and writing.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from isthmus.errors import IsthmusError
from isthmus.record import record

CLAUDE_DESKTOP, CLAUDE_CODE, VSCODE = FOREIGN_FORMS = ("claude-desktop", "claude-code", "vscode")
"""The programs whose files are read."""
MAXIMUM_FOREIGN_SERVERS = 200
_KEPT = ("type", "command", "args", "env", "cwd", "url", "httpUrl", "headers", "timeout", "description", "disabled")
_LONGEST_NAME = 64
_IN_BRACES = re.compile(r"\$\{([^}]*)\}")
_PLAIN = re.compile(r"\$[A-Za-z_]")
_SHELL_FORM = re.compile(r"[A-Za-z_]\w*(?::-.*)?", re.ASCII | re.DOTALL)
_FOLDERS_OF_VSCODE = {"workspaceFolder": "${PWD}", "userHome": "${HOME}", "cwd": "${PWD}"}


class ForeignFileError(IsthmusError):
    """The file has another form than expected; the text says which one was."""


@record
class ForeignServer:
    """A server in a file of another program. ``name`` fits our rules; ``problem`` is why it cannot be taken over.

    ``left_out`` are the names of the properties that are not taken over.
    """

    name: str
    entry: Mapping[str, Any]
    problem: str | None = None
    left_out: tuple[str, ...] = ()


class _UnfitError(Exception):
    """A text that would mean something else here."""


def foreign_servers(form: str, value: object, folder: Path) -> tuple[ForeignServer, ...]:
    """Return the servers in the parsed content of a file of a program (one of `FOREIGN_FORMS`).

    Servers that Claude Code keeps for `folder` alone (absolute) are taken over, too, and win over servers of all
    folders. Servers that are switched off, there for `folder`, stay so.

    Raises:
        ForeignFileError: it has another form.
    """
    found: dict[str, ForeignServer] = {}
    switched_off = _switched_off(value, folder) if form == CLAUDE_CODE else frozenset[str]()
    for name, entry in _entries(form, value, folder):
        server = _server(form, name, entry)
        if name in switched_off and server.problem is None:
            server = replace(server, entry={**server.entry, "disabled": True})
        found[server.name] = server
        if len(found) > MAXIMUM_FOREIGN_SERVERS:
            raise ForeignFileError(f"expected at most {MAXIMUM_FOREIGN_SERVERS} servers")
    return tuple(found.values())


def _entries(form: str, value: object, folder: Path) -> Iterator[tuple[str, object]]:
    top = _object("the file", value)
    if form == VSCODE:
        yield from _object("servers", top.get("servers")).items()
        return
    yield from _object("mcpServers", top.get("mcpServers")).items()
    if form == CLAUDE_CODE:
        own = _object("projects", top.get("projects")).get(str(folder))
        yield from _object("mcpServers", _object(f"projects.{folder}", own).get("mcpServers")).items()


def _switched_off(value: object, folder: Path) -> frozenset[str]:
    """Return the names of the servers that Claude Code does not use in a folder."""
    projects = _object("projects", _object("the file", value).get("projects"))
    names = _object(f"projects.{folder}", projects.get(str(folder))).get("disabledMcpServers")
    return frozenset(map(str, cast("list[object]", names))) if isinstance(names, list) else frozenset()


def _object(what: str, value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ForeignFileError(f"{what}: expected an object {{...}}, received {value!r:.80}")
    return cast("dict[str, object]", value)


def _server(form: str, name: str, value: object) -> ForeignServer:
    fitting = re.sub(r"[^\w.-]+", "-", name).strip("-._")[:_LONGEST_NAME]
    if not fitting:
        return ForeignServer(name[:_LONGEST_NAME], {}, "its name has no letter or digit")
    if not isinstance(value, dict):
        return ForeignServer(fitting, {}, f"expected an object {{...}}, received {value!r:.80}")
    given = cast("dict[str, object]", value)
    left_out = tuple(str(key)[:_LONGEST_NAME] for key in given if key not in _KEPT)
    try:
        if form == VSCODE and "envFile" in given:
            raise _UnfitError("its variables are in a file (envFile); write them into env")
        entry = {key: _translated(form, key, given[key]) for key in _KEPT if key in given}
    except _UnfitError as error:
        return ForeignServer(fitting, {}, str(error), left_out)
    return ForeignServer(fitting, entry, None, left_out)


def _translated(form: str, where: str, value: object) -> object:
    """Return a value with its texts in our form; raise _UnfitError for one that has none."""
    match value:
        case str():
            return _text(form, where, value)
        case list():
            return [_translated(form, where, item) for item in cast("list[object]", value)]
        case dict():
            items = cast("dict[str, object]", value).items()
            return {key: _translated(form, f"{where}.{key}", item) for key, item in items}
        case _:
            return value


def _text(form: str, where: str, text: str) -> str:
    """Return a text in which the references to variables have our form."""
    if form == CLAUDE_DESKTOP:
        rest, result = text, text
    else:
        rest = _IN_BRACES.sub("", text)
        result = _IN_BRACES.sub(lambda found: _reference(form, where, found[1]), text)
    # Both programs take these characters literally, while here they would be replaced by a variable's value.
    if _PLAIN.search(rest) or _IN_BRACES.search(rest):
        raise _UnfitError(f"{where} has a $ before a name, which stands for a variable here; add the server by hand")
    return result


def _reference(form: str, where: str, inside: str) -> str:
    if form == CLAUDE_CODE:
        if _SHELL_FORM.fullmatch(inside):
            return f"${{{inside}}}"
        raise _UnfitError(f"{where} has ${{{inside[:80]}}}, which is not the name of a variable")
    kind, colon, name = inside.partition(":")
    if kind == "input" and colon:
        raise _UnfitError(
            f"{where} has ${{input:{name[:80]}}}, a value that VS Code asks for and keeps; set a variable to it, and "
            "add the server by hand with ${NAME} in its place"
        )
    if kind == "env" and _SHELL_FORM.fullmatch(name) and ":" not in name:
        return f"${{{name}}}"
    if inside in _FOLDERS_OF_VSCODE:
        return _FOLDERS_OF_VSCODE[inside]
    raise _UnfitError(f"{where} has ${{{inside[:80]}}}, which only VS Code knows")
