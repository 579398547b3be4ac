"""Options of a conversation in the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from isthmus.encoding.codec import JsonObject
from isthmus.fronts.task_stream import FrontTimeouts
from isthmus.record import record
from isthmus.terminal.interactive.announcements import Announcements
from isthmus.terminal.interactive.interactive.attention import CallsBy
from isthmus.terminal.questions.early_text import PAUSE_SECONDS
from isthmus.terminal.screen.themes import ColourTheme


@record
class InteractiveOptions:
    """Options of a conversation.

    ``settings`` are the AgentSettings that are sent with the first message of a session. ``workspace`` (an absolute
    path) limits the sessions that are listed and that ``resume="latest"`` finds; None means all. ``resume`` may also
    be the id of a session. ``heading`` is printed first, dimmed. ``first_prompt`` is sent before the user is
    prompted. ``command`` is the command that started the program, for advice such as ``isthmus --resume ID``.
    ``awaited_servers`` returns the MCP servers that a turn waits for now. ``approval_mode`` is the mode that the
    program was started in, which a resumed session gets, too; None leaves it to the agent. ``model`` is the model of
    a new session, if known; ``calls_by`` the ways to call the user back. ``has_vi_keys``: the prompt is edited
    with the keys of vi. ``pause`` is the time in seconds without a key before a question accepts answers.
    ``announcements`` are shown as they come. ``theme`` is the theme at the start; ``keep_theme`` keeps another one for
    the next start, and returns a line that says so; ``settings_lines`` returns the lines of ``/settings``. Both block
    and raise IsthmusError; None if there is nothing to keep or show.
    """

    settings: JsonObject | None = None
    workspace: str | None = None
    resume: str | None = None
    first_prompt: str | None = None
    heading: Sequence[str] = ()
    history_file: Path | None = None
    answered_by: str = "terminal"
    command: str = "isthmus"
    awaited_servers: Callable[[], Sequence[str]] = tuple
    approval_mode: str | None = None
    model: str = ""
    calls_by: CallsBy = CallsBy.ALL
    has_vi_keys: bool = False
    pause: float = PAUSE_SECONDS
    announcements: Announcements = field(default_factory=Announcements)
    theme: ColourTheme = ColourTheme.AUTO
    keep_theme: Callable[[ColourTheme], str] | None = None
    settings_lines: Callable[[], Sequence[str]] | None = None
    timeouts: FrontTimeouts = FrontTimeouts()
