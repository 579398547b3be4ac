"""Options of a companion, which the user sets at its start, and its limits and timeouts, which tests replace."""

from isthmus.listeners.limits import ListenerLimits, ServerLimits
from isthmus.record import record


@record
class CompanionOptions:
    """Options of a companion. ``folders`` replace the editor's workspace folders.

    ``is_trusted`` replaces the editor's report, unless it is None. With ``fresh``, port and token of a companion that
    has just ended are not taken over. ``watch`` is the id of a process with which the companion ends; if other
    agents are attached at that time, it ends with the last of them. Without ``share_context`` agents receive no open
    files, selections or mentions; without ``share_selection`` no selected text. Without ``show_diffs`` no review is
    shown: agents ask in their terminals. Without ``records_changes`` nothing of what agents write is recorded.
    ``linters`` are run for diagnostics ("ruff", "pyright"). ``protocols`` are the names of the protocols to serve,
    empty for all: an IDE with an extension of its own needs only the others. ``tool_files`` are Python files with
    custom tools.
    """

    folders: tuple[str, ...] = ()
    is_trusted: bool | None = None
    fresh: bool = False
    allow_agent_accept: bool = False
    watch: int | None = None
    share_context: bool = True
    share_selection: bool = True
    show_diffs: bool = True
    records_changes: bool = True
    linters: tuple[str, ...] = ()
    protocols: tuple[str, ...] = ()
    tool_files: tuple[str, ...] = ()


@record
class ReviewLimits:
    """Limits of the reviews of a companion."""

    maximum_open: int = 100
    """Maximum number of open reviews, queued ones included."""
    kept_decisions: int = 50
    """Maximum number of ended reviews that are kept for a late closeDiff or answer."""
    kept_characters: int = 16 * 1024 * 1024
    """Maximum total length of the proposals of ended reviews, in characters."""
    decision_seconds: float = 1.0
    """Maximum wait in seconds for the editor's event after a view disappeared."""
    settle_seconds: float = 1.0
    """Maximum wait in seconds for an agent to write an accepted edit before the next review is shown."""
    shutdown_seconds: float = 3.0
    """Maximum time in seconds to close all views when the companion ends."""


@record(kw_only=True)
class HttpServerLimits(ServerLimits):
    """Limits of an HTTP server of a companion."""

    descriptor_share: float = 0.25
    head_seconds: float = 10.0
    grace_seconds: float = 2.0
    concurrency: int | None = 256 + 1024
    """Maximum number of connections: 256 with a token plus 1024 without."""


@record(kw_only=True)
class GeminiServerLimits(HttpServerLimits):
    """Limits of the companion's server for Gemini CLI."""

    keep_alive_seconds: float = 15.0
    """Maximum silence in seconds on an event stream."""
    lost_stream_seconds: float = 20.0
    """Delay in seconds before a client that lost its stream is removed and its views are closed.

    A client that reconnects does so within ten seconds.
    """


@record(kw_only=True)
class ClaudeServerLimits(ListenerLimits):
    """Limits of the companion's WebSocket server. ``head_seconds`` applies to the whole handshake."""

    descriptor_share: float = 0.25
    head_seconds: float = 10.0
    maximum_clients: int = 64
    maximum_message_bytes: int = 32 * 1024 * 1024
    maximum_unread_bytes: int = 64 * 1024 * 1024
    """Maximum number of unsent bytes for a client; above it, the client is disconnected."""
    ping_seconds: float = 30.0
    """Interval in seconds of our pings, and maximum wait for each pong: real CLIs send no pings."""
    close_seconds: float = 2.0
    """Maximum wait in seconds for the client's close frame."""


@record(kw_only=True)
class PermissionLimits:
    """Times of permission questions that an agent's hook asks beside its terminal."""

    look_seconds: float = 0.1
    """Interval in seconds at which a waiting question is compared with the agent's terminal."""
    terminal_seconds: float = 2.0
    """Time in seconds within which the terminal must say that it asks, too."""
    diff_seconds: float = 1.5
    """Time in seconds in which an agent that asks about an edit may open it as a diff, which is then the question."""
    first_seconds: float = 60.0
    """Time in seconds for which a question is asked whose terminal asks only afterwards."""


@record
class CompanionLimits:
    """Limits of a companion."""

    diagnostics_seconds: float = 0.9
    """Maximum wait in seconds for the editor's diagnostics, and separately for its open files.

    Real agents ask before each turn and after each edit, and wait for the answer without a deadline of their own.
    """
    settle_diagnostics_seconds: float = 2.0
    """Maximum time in seconds after a file was read again in which its diagnostics are waited for."""
    quiet_diagnostics_seconds: float = 0.3
    """Time in seconds without new diagnostics of a file read again after which the last ones count as complete."""
    empty_diagnostics_seconds: float = 1.0
    """The same time, if the first report was that there are none.

    Many language servers empty a file's diagnostics at once when it is read again, and report new ones after a while.
    """
    disk_seconds: float = 0.25
    """Interval in seconds at which open files are compared with the disk while agents are attached."""
    written_seconds: float = 1.0
    """Minimum interval in seconds at which the workspace is compared with the disk while agents are attached."""
    housekeeping_seconds: float = 2.0
    """Maximum time in seconds before a removed discovery file is written again."""
    reviews: ReviewLimits = ReviewLimits()
    gemini: GeminiServerLimits = GeminiServerLimits()
    claude: ClaudeServerLimits = ClaudeServerLimits()
    permissions: PermissionLimits = PermissionLimits()
