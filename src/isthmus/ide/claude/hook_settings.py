"""Settings that Claude Code gets on its command line: hooks that ask for permissions elsewhere, too, and tell of turns.

No file of the user or the project is changed, and none of a project's can replace the hooks: ``--settings`` adds to
what they have. Nothing secret is in the arguments, which every user of the machine can read: what stands in a file
of the user's goes along in a private file.
"""

import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final, cast

from isthmus.files.locations import write_private
from isthmus.ide import permission_hook
from isthmus.ide.claude.permissions import EVENT
from isthmus.ide.claude.turns import BEGIN_EVENT, END_EVENT
from isthmus.ide.cli_settings import read_settings
from isthmus.ide.control.questions import PERMISSION_SECONDS
from isthmus.ide.processes import process_is_alive

PROGRAM: Final = "claude"
_NAMES: Final = frozenset({PROGRAM, "claude-code"})
_LAUNCHERS: Final = frozenset({"npx", "bunx", "env"})
"""Programs that start another one on this machine, whose name is one of their arguments."""
OPTION: Final = "--settings"
_WITHOUT_QUESTIONS: Final = frozenset({"-p", "--print"})
"""Options with which the CLI asks nothing in its terminal: a script must not wait for an answer there."""
_FILE: Final = "claude-settings-{}.json"
"""Name of a file with settings; it has the id of the process that becomes the CLI, and is removed after its end."""
_FILES: Final = re.compile(r"claude-settings-(\d{1,10})\.json")
_EXTRA_SECONDS: Final = 60
"""Time in seconds that the CLI waits for the hook beyond the question's own."""
_TURN_SECONDS: Final = 5
"""Time in seconds that the CLI waits for a hook that tells of a turn."""


def with_hooks(arguments: Sequence[str], folder: Path, port: int, *, permissions: bool = True) -> list[str]:
    """Return the command line of an agent CLI with our hooks, if it starts Claude Code in a terminal; else unchanged.

    ``folder`` has the control files of the companions, ``port`` is one of the companion's. Without ``permissions`` the
    hooks only tell of turns. Blocks: settings of the user's own on the command line are read, and go along; settings of
    a file by a private one in ``folder``, for this process, which is to become the CLI.
    """
    given = list(arguments)
    may_be = given if given and _name(given[0]) in _LAUNCHERS else given[:1]
    at = next((index for index, each in enumerate(may_be) if _name(each) in _NAMES), None)
    if at is None or not _WITHOUT_QUESTIONS.isdisjoint(given[at:]):
        return given
    text, rest = _users_settings(given[at + 1 :])
    users = {} if text is None else _read(text)
    if users is None:
        return given
    settings = users
    if permissions:
        settings = _with_hook(settings, EVENT, _command(folder, port), int(PERMISSION_SECONDS) + _EXTRA_SECONDS)
    for event in (BEGIN_EVENT, END_EVENT):
        settings = _with_hook(settings, event, _command(folder, port, permission_hook.TURN), _TURN_SECONDS)
    if text is None or _is_inline(text):
        return [*given[: at + 1], OPTION, json.dumps(settings), *rest]
    try:
        return [*given[: at + 1], OPTION, str(_stored(folder, settings)), *rest]
    except OSError:
        return given


def _stored(folder: Path, settings: dict[str, Any]) -> Path:
    """Store settings in a private file; remove the files of processes that have ended."""
    for path in folder.iterdir():
        if (matched := _FILES.fullmatch(path.name)) and not process_is_alive(int(matched[1])):
            with suppress(OSError):
                path.unlink()
    file = folder / _FILE.format(os.getpid())
    write_private(file, settings)
    return file


def _name(argument: str) -> str:
    """Return the name of a program, or of a package without its version."""
    return PurePath(argument).name.partition("@")[0]


def _command(folder: Path, port: int, *words: str) -> str:
    # -I and -S: nothing of the environment, the current folder or installed packages is loaded.
    program = [sys.executable, "-I", "-S", str(Path(permission_hook.__file__).resolve())]
    # If the program is gone, as after an update, Python ends with 2, and the CLI would take that for a refusal.
    return shlex.join([*program, str(folder), str(port), PROGRAM, *words]) + " || exit 0"


def _with_hook(settings: dict[str, Any], event: str, command: str, seconds: int) -> dict[str, Any]:
    entry = {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
    hooks: object = settings.get("hooks", {})
    events = cast("dict[str, Any]", hooks) if isinstance(hooks, dict) else {}
    own: object = events.get(event, [])
    entries = cast("list[Any]", own) if isinstance(own, list) else []
    return {**settings, "hooks": {**events, event: [*entries, entry]}}


def _users_settings(arguments: list[str]) -> tuple[str | None, list[str]]:
    """Return the settings among these arguments, or the path of their file, and the others; None without any."""
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if argument == "--":
            break
        if name != OPTION:
            continue
        if not equals and index + 1 == len(arguments):
            return "", arguments
        text = value if equals else arguments[index + 1]
        return text, [*arguments[:index], *arguments[index + (1 if equals else 2) :]]
    return None, arguments


def _is_inline(text: str) -> bool:
    return text.lstrip().startswith("{")


def _read(text: str) -> dict[str, Any] | None:
    """Return settings, or those in the file of this path; None if they cannot be read."""
    if not _is_inline(text):
        found = read_settings(Path(text))
        return dict(found) if found is not None else None
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
