"""Limits of a hosted ACP agent: deadlines, and the sizes of everything that it sends."""

from isthmus.record import record


@record(kw_only=True)
class HostLimits:
    """Deadlines in seconds, sizes in characters where not stated otherwise."""

    initialize_seconds: float = 90.0
    """Maximum wait for the answer to ``initialize``: agents that run on Node.js take up to 15 s on a busy machine."""
    session_seconds: float = 90.0
    """Maximum wait for a new session; the agent may connect to its MCP servers meanwhile."""
    load_seconds: float = 180.0
    """Maximum wait for a former session, all of which the agent may send again."""
    commands_seconds: float = 5.0
    """Maximum wait of a client that asks for slash commands of an agent which is started for it."""
    past_seconds: float = 0.3
    """Time without an update after which all of a loaded session has come."""
    cancel_seconds: float = 5.0
    """Maximum time in which a cancelled turn ends; then the agent's process is ended."""
    exit_seconds: float = 2.0
    """Maximum time in which the agent ends after its standard input is closed."""
    idle_seconds: float = 900.0
    """Time without a turn after which an agent's process is ended; its session can be loaded again."""
    answer_seconds: float = 24 * 3600.0
    """Maximum time for which an agent's process waits for a user's answer."""
    gather_seconds: float = 0.2
    """Time without news after which a task with an open question ends its segment."""
    working_seconds: float = 10.0
    """The same while another call is running."""
    processes: int = 16
    """Maximum number of agents' processes."""
    message_bytes: int = 32 * 1024 * 1024
    """Maximum size of a message of an agent in bytes."""
    open_requests: int = 100
    """Maximum number of an agent's requests that are carried out at the same time."""
    waiting_updates: int = 1000
    """Maximum number of updates that wait for a segment; then nothing more is read from the agent."""
    waiting_bytes: int = 64 * 1024 * 1024
    """The same for their size in bytes."""
    text: int = 1024 * 1024
    """Maximum length of a text of a call: its output, its live output, its error."""
    title: int = 2000
    """Maximum length of a title, a name or an id."""
    file: int = 10 * 1024 * 1024
    """Maximum length of one side of a diff, and of a file that is read or written."""
    arguments: int = 256 * 1024
    """Maximum size of a call's arguments as JSON; larger ones are left out."""
    options: int = 20
    """Maximum number of options of a question."""
    open_questions: int = 50
    """Maximum number of questions that are open at the same time."""
    calls: int = 10_000
    """Maximum number of calls of one turn; further ones are not shown."""
    commands: int = 500
    """Maximum number of slash commands."""
    logged_lines: int = 2000
    """Maximum number of lines of an agent's error output that are logged."""
