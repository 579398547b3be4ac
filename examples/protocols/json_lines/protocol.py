"""A companion protocol of our own as one object: JSON objects, one on each line, over TCP on this machine.

An agent finds ``~/.local/share/isthmus/json-lines/PORT.json`` and sends its token in the first line:
``{"token": TOKEN, "agent": NAME}``. The answer is ``{"editor": NAME}``. ``{"openDiff": {"path": PATH, "text": TEXT}}``
shows an edit to the user. The answer is ``opened`` or ``error``; ``accepted`` with the final text, ``rejected`` or
``closed`` follows. ``active`` reports the file that the user looks at.

docs/how-to/add-a-companion-protocol.md puts it into Isthmus. A program of your own can pass it to ``CompanionHost``
instead. Isthmus's own agent does not speak it; isthmus.ide.gemini.peer shows a client.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from isthmus.encoding.json_shapes import as_list, as_text
from isthmus.files.locations import data_directory
from isthmus.ide.cli_choice import Announcement, CliChoice, Here, nothing_here
from isthmus.ide.discovery_file import (
    RejectedFile,
    UnusableFileError,
    folders_of,
    named_files,
    number,
    port_number,
    read_object,
)
from isthmus.ide.ide_protocol import AgentCli, FoundIde, FoundIdes, IdeProtocol

if TYPE_CHECKING:
    from isthmus.ide.agent_server import AgentServer
    from isthmus.ide.companion import Companion

CLI = "JSON lines agent"
PORT_VARIABLE = "JSON_LINES_PORT"
FOLDER = "json-lines"
"""Folder of the discovery files below our data folder."""


def _discovery_files(environment: Mapping[str, str]) -> Iterator[Path]:
    return named_files(data_directory(environment) / FOLDER, re.compile(r"\d{1,5}\.json"))


def _read(path: Path) -> FoundIde | RejectedFile:
    try:
        content = read_object(path)
    except UnusableFileError as error:
        return RejectedFile(str(path), str(error))
    port, token = port_number(path.stem), as_text(content.get("authToken"))
    if port is None or not token:
        return RejectedFile(str(path), "expected a port as the file's name, and authToken in it")
    editor, folders = as_text(content.get("editor")) or "IDE", folders_of(as_list(content.get("folders")))
    return FoundIde(port, token, editor, editor, number(content.get("pid")), folders, str(path))


def _choose(files: Sequence[Announcement], here: Here) -> CliChoice:
    for file in files:
        if here.fits(file) and file.port in here.open_ports:
            return CliChoice(CLI, True, file.path, file.port, file.editor, "the first one for this folder")
    return nothing_here(CLI, files, here)


def _no_remarks(_folder: Path, _environment: Mapping[str, str]) -> tuple[str, ...]:
    return ()


def _find(_workspace: Path, _environment: Mapping[str, str]) -> FoundIdes:
    return FoundIdes((), ())  # our own agent uses another protocol of the same companion


def _client(_workspace: Path, _environment: Mapping[str, str]) -> NoReturn:
    from isthmus.ide.clients.ide_client import IdeError

    raise IdeError("Isthmus has no client of the JSON lines protocol")


def _server(companion: "Companion", _state_changed: Callable[[], None]) -> "AgentServer":
    from protocols.json_lines.server import JsonLinesServer

    return JsonLinesServer(companion)


JSON_LINES = IdeProtocol(
    "json-lines",
    PORT_VARIABLE,
    (AgentCli(CLI, PORT_VARIABLE, _discovery_files, _read, _choose, _no_remarks, removes_dead=False),),
    _find,
    _client,
    _server,
)
