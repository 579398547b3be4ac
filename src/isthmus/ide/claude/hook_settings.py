"""Settings that Claude Code gets on its command line: hooks that ask for permissions elsewhere, too, and tell of turns.

No file of the user or the project is changed, and none of a project's can replace the hooks: ``--settings`` adds to
what they have. Nothing secret is in the arguments.
"""

import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any, Final, cast

from isthmus.ide import permission_hook
from isthmus.ide.claude.permissions import EVENT
from isthmus.ide.claude.turns import BEGIN_EVENT, END_EVENT
from isthmus.ide.cli_settings import read_settings
from isthmus.ide.control.questions import PERMISSION_SECONDS

PROGRAM: Final = "claude"
_NAMES: Final = frozenset({PROGRAM, "claude-code"})
_LAUNCHERS: Final = frozenset({"npx", "bunx", "env"})
"""Programs that start another one on this machine, whose name is one of their arguments."""
OPTION: Final = "--settings"
_WITHOUT_QUESTIONS: Final = frozenset({"-p", "--print"})
"""Options with which the CLI asks nothing in its terminal: a script must not wait for an answer there."""
_EXTRA_SECONDS: Final = 60
"""Time in seconds that the CLI waits for the hook beyond the question's own."""
_TURN_SECONDS: Final = 5
"""Time in seconds that the CLI waits for a hook that tells of a turn."""


def with_hooks(arguments: Sequence[str], folder: Path, port: int, *, permissions: bool = True) -> list[str]:
    """Return the command line of an agent CLI with our hooks, if it starts Claude Code in a terminal; else unchanged.

    ``folder`` has the control files of the companions, ``port`` is one of the companion's. Without ``permissions`` the
    hooks only tell of turns. Blocks: settings of the user's own on the command line are read, and go along.
    """
    given = list(arguments)
    may_be = given if given and _name(given[0]) in _LAUNCHERS else given[:1]
    at = next((index for index, each in enumerate(may_be) if _name(each) in _NAMES), None)
    if at is None or not _WITHOUT_QUESTIONS.isdisjoint(given[at:]):
        return given
    users, rest = _users_settings(given[at + 1 :])
    if users is None:
        return given
    command = _command(folder, port)
    if permissions:
        users = _with_hook(users, EVENT, command, int(PERMISSION_SECONDS) + _EXTRA_SECONDS)
    for event in (BEGIN_EVENT, END_EVENT):
        users = _with_hook(users, event, f"{command} {permission_hook.TURN}", _TURN_SECONDS)
    return [*given[: at + 1], OPTION, json.dumps(users), *rest]


def _name(argument: str) -> str:
    """Return the name of a program, or of a package without its version."""
    return PurePath(argument).name.partition("@")[0]


def _command(folder: Path, port: int) -> str:
    # -I and -S: nothing of the environment, the current folder or installed packages is loaded.
    program = [sys.executable, "-I", "-S", str(Path(permission_hook.__file__).resolve())]
    return shlex.join([*program, str(folder), str(port), PROGRAM])


def _with_hook(settings: dict[str, Any], event: str, command: str, seconds: int) -> dict[str, Any]:
    entry = {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
    hooks: object = settings.get("hooks", {})
    events = cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}
    own: object = events.get(event, [])
    entries = cast("list[Any]", own) if isinstance(own, list) else []
    return {**settings, "hooks": {**events, event: [*entries, entry]}}


def _users_settings(arguments: list[str]) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the settings among these arguments, and the others; None for settings that cannot be read."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if argument == "--":
            break
        if name != OPTION:
            continue
        if not equals and index + 1 == len(arguments):
            return None, arguments
        text = value if equals else arguments[index + 1]
        return _read(text), [*arguments[:index], *arguments[index + (1 if equals else 2) :]]
    return {}, arguments


def _read(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        found = read_settings(Path(text))
        return dict(found) if found is not None else None
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
