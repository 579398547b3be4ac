"""A companion protocol as one object, and the results of a search for IDEs. Each protocol's folder defines its own."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.ide.cli_choice import Announcement, CliChoice, Here
from isthmus.ide.discovery_file import RejectedFile, mismatch
from isthmus.network.loopback import another_user_at
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.ide.agent_server import AgentServer
    from isthmus.ide.clients.ide_client import ConnectableClient
    from isthmus.ide.companion import Companion
    from isthmus.ide.permissions import PermissionHook
    from isthmus.ide.turns import TurnReader
    from isthmus.network.checked_transport import AddressPolicy


@record
class RemoteEndpoint:
    """An endpoint that a client gave as a URL. ``headers`` are sent with each request and never shown.

    ``address_policy`` decides on each address of the URL's host; None allows all addresses.
    """

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    address_policy: "AddressPolicy | None" = None


@record
class FoundIde:
    """An IDE that serves the workspace. ``token`` is None if the IDE does not require one.

    ``source`` is the discovery file, or the environment variable that named it.
    """

    port: int
    token: str | None = field(repr=False)
    ide_name: str
    display_name: str
    pid: int | None
    folders: tuple[str, ...]
    source: str
    remote: RemoteEndpoint | None = None
    """Endpoint of an IDE that was given by a URL; port and token are not used then."""
    has_identity: bool = True
    """Whether the discovery file names the IDE; if not, real clients identify it by their terminal."""
    modified_at: float = 0.0
    """Unix time in seconds of the discovery file's last change; 0 if the protocol does not rank by it."""


@record
class FoundIdes:
    """The usable IDEs, best first, and the discovery files that were rejected."""

    ides: tuple[FoundIde, ...]
    rejected: tuple[RejectedFile, ...]


def _current_form(_path: Path) -> int | None:
    return None


@record
class AgentCli:
    """An agent CLI that speaks a protocol: its discovery files, and how it chooses among them.

    ``name`` is the name that users know. ``port_variable`` is the environment variable in which it looks for a port.
    ``discovery_files`` yields the files that it finds with an environment, and ``read`` reads one of them.
    ``old_number`` returns the number in the name of a file of an old form, or None for the current form. All three
    block. ``choose`` predicts the file that it uses. ``remarks`` returns the restrictions by its settings if it is
    started in a folder. ``removes_dead`` is true if it removes files whose process it does not see.
    """

    name: str
    port_variable: str
    discovery_files: Callable[[Mapping[str, str]], Iterator[Path]]
    read: Callable[[Path], FoundIde | RejectedFile]
    choose: Callable[[Sequence[Announcement], Here], CliChoice]
    remarks: Callable[[Path, Mapping[str, str]], tuple[str, ...]]
    old_number: Callable[[Path], int | None] = _current_form
    removes_dead: bool = True


@record
class IdeProtocol:
    """A protocol between agent CLIs and IDEs, for both ends. ``name`` is its name on the command line.

    ``port_variable`` is the environment variable by which our own agent finds an IDE's port. ``find`` blocks.
    ``client`` makes a client of the best IDE, ``server`` a server that calls the callback when its saved state has
    changed. ``permissions`` makes the messages of the hook with which its CLI asks for permissions, and ``turns`` the
    reader of the hooks that tell of prompts; both are None without such hooks. All four import the modules that they
    need.
    """

    name: str
    port_variable: str
    clis: tuple[AgentCli, ...]
    find: Callable[[Path, Mapping[str, str]], FoundIdes]
    client: "Callable[[Path, Mapping[str, str]], ConnectableClient]"
    server: "Callable[[Companion, Callable[[], None]], AgentServer]"
    permissions: "Callable[[], PermissionHook] | None" = None
    turns: "Callable[[], TurnReader] | None" = None


def sort_files(
    root: str, paths: Iterable[Path], read: Callable[[Path], FoundIde | RejectedFile], *, named: int | None = None
) -> tuple[list[FoundIde], list[RejectedFile], set[int]]:
    """Return the usable IDEs, the rejected files, and the ports on which another user listens.

    The IDE at the port ``named`` is usable with any folders.
    """
    usable: list[FoundIde] = []
    rejected: list[RejectedFile] = []
    refused: set[int] = set()
    for path in paths:
        ide = read(path)
        if isinstance(ide, RejectedFile):
            rejected.append(ide)
        elif ide.port != named and (reason := mismatch(root, ide.folders)):
            rejected.append(RejectedFile(ide.source, reason))
        elif reason := another_user_at(ide.port):
            rejected.append(RejectedFile(ide.source, reason))
            refused.add(ide.port)
        else:
            usable.append(ide)
    return usable, rejected, refused
