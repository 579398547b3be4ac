"""Options for running an agent in this process, see :mod:`isthmus.programs.agent.local_agent`."""

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING

from isthmus.agent.approval.session_policy import SettingsRule
from isthmus.agent.resources import AgentResources
from isthmus.engine.editor_surface import OnShown
from isthmus.engine.port.placement import EVERY_TASK, Placement
from isthmus.mcp_host.host import McpHost
from isthmus.mcp_host.workspace_servers import OnWait
from isthmus.parts.editor.directory import EditorDirectory, EditorTimeouts
from isthmus.programs.setup.trust_question import OnUnknown
from isthmus.record import record
from isthmus.runtime.telemetry import NO_TELEMETRY, Telemetry
from isthmus.tools.edits.editor_text import EditorText, no_editor

if TYPE_CHECKING:
    from isthmus.network.checked_transport import AddressPolicy
    from isthmus.parts.repositories.served import ServedRepositories

UNATTENDED_WAIT_SECONDS = 20.0
"""Maximum time in seconds that a turn without a user at the terminal waits for MCP servers that are connecting."""


class ClientPrograms(StrEnum):
    """Clients whose own MCP servers may be commands."""

    OF_NOBODY = "of nobody"
    OF_OWNER_HERE = "of the owner here"
    """Clients of :meth:`isthmus.engine.Engine.for_owner_here`."""
    OF_THE_CLIENT = "of the client"
    """Client of the engine itself: a program of the user's that has started it."""


@record
class McpUse:
    """Options for the use of MCP servers.

    ``wait_seconds``: maximum time that a turn waits for servers that are still connecting. ``address_policy``:
    called with the host name and the address of a client's server; returns the reason to refuse it, or None.
    Without it every address is allowed. ``open_browser`` shows a login page to the user at this machine.
    ``on_unknown_trust`` is called at the start if the folder's files would start programs and the user has not
    decided about trust. ``on_wait`` receives the servers that a turn waits for, when that takes long.
    ``is_for_one_turn``: /mcp waits, too. ``client_programs``: whose servers may be commands. ``on_host`` receives the
    host once the agent runs.
    """

    wait_seconds: float = 5.0
    address_policy: "AddressPolicy | None" = None
    open_browser: Callable[[str], bool | None] | None = None
    on_unknown_trust: OnUnknown | None = None
    on_wait: OnWait | None = None
    is_for_one_turn: bool = False
    client_programs: ClientPrograms = ClientPrograms.OF_NOBODY
    on_host: Callable[[McpHost], None] | None = None


@record
class LocalAgentOptions:
    """Options of an agent in this process.

    With ``takes_over`` it continues the tasks of ended processes, under its own approval mode; only a server does so.
    An idle agent opens no model, no editor and no MCP server. ``on_shown`` receives the questions that an editor
    shows, ``on_resources`` the agent's resources. ``editor_text`` returns what the user's editor has of a file.

    ``names_settings_files``: refusals name the settings files, whose paths clients of a server must not see.
    ``editor_directory`` finds the editors, if the setup uses them, and is closed at the end; None makes one.
    ``placement`` says which tasks run here, ``repositories`` are the repositories whose worktrees are workspaces,
    ``telemetry`` takes what happens.
    """

    takes_over: bool = False
    is_idle: bool = False
    mcp: McpUse = McpUse()
    settings_rule: SettingsRule = SettingsRule()
    on_shown: OnShown | None = None
    on_resources: Callable[[AgentResources], None] | None = None
    names_settings_files: bool = True
    editor_timeouts: EditorTimeouts = EditorTimeouts()
    editor_text: EditorText = no_editor
    editor_directory: EditorDirectory | None = None
    placement: Placement = EVERY_TASK
    repositories: "ServedRepositories | None" = None
    telemetry: Telemetry = NO_TELEMETRY
