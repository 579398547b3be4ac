"""A hook of Gemini CLI or Claude Code: a program that runs at an event. :mod:`isthmus.settings.hook_files` reads it."""

from enum import Enum

from isthmus.record import record


class HookDialect(Enum):
    """Program whose names and JSON a hook expects."""

    GEMINI = "Gemini CLI"
    CLAUDE = "Claude Code"


class HookEvent(Enum):
    """Moment at which hooks run here."""

    BEFORE_TOOL = "before a tool"
    AFTER_TOOL = "after a tool"
    AFTER_FAILED_TOOL = "after a tool that failed"
    PROMPT = "before the agent works on a prompt"
    SESSION_START = "before the first prompt of a session"
    PERMISSION = "before the user is asked about a call"
    END = "when the agent wants to end its work on a prompt"
    SUBAGENT_START = "before a subagent works on its task"
    SUBAGENT_END = "when a subagent wants to end its work"
    BEFORE_MODEL = "before a request to the model"
    TOOL_SELECTION = "before the tools of a request are chosen"
    AFTER_MODEL = "after an answer of the model"


MODEL_EVENTS = frozenset((HookEvent.BEFORE_MODEL, HookEvent.TOOL_SELECTION, HookEvent.AFTER_MODEL))
"""Events around a request to the model."""


@record
class Hook:
    """A program that runs at an event.

    Attributes:
        dialect: whose names and JSON it expects.
        event: when it runs.
        event_name: the event's name in its dialect.
        command: what the shell runs, or the program if there are ``arguments``.
        where: name of the hook in messages.
        matcher: the tools, or subagents, for which it runs; empty for all.
        condition: another condition on the call, such as ``Bash(rm *)``; may be empty.
        arguments: arguments of the program; None for a command of the shell.
        seconds: maximum time in seconds.
        is_sequential: whether no other hook runs at the same time.
        is_project: whether a project's file names it, so that it can only make things stricter.
    """

    dialect: HookDialect
    event: HookEvent
    event_name: str
    command: str
    where: str
    matcher: str = ""
    condition: str = ""
    arguments: tuple[str, ...] | None = None
    seconds: float = 60.0
    is_sequential: bool = False
    is_project: bool = False
