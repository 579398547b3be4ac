"""Shows an entry that somebody else wrote, whole, and has the user confirm it."""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click

from isthmus.mcp_host.config.secrets import HIDDEN, is_secret_name, shown_command, shown_url
from isthmus.programs.setup.setup import BadInputError
from isthmus.text.visible import visible_line

_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")


def entry_lines(name: str, entry: Mapping[str, Any], *, is_private: bool = False) -> Iterator[str]:
    """Yield all that the entry does. Values are hidden only where a secret is expected and no variable is named.

    Of a ``private`` entry, which another program of the user has kept, values of variables may all be secrets.
    """
    url = str(entry.get("httpUrl") or entry.get("url"))
    if "command" in entry:
        command, args = str(entry["command"]), cast("list[str]", entry.get("args") or [])
        yield f"+ {name}: command: {shown_command(command, args) if is_private else shlex.join([command, *args])}"
    else:
        yield f"+ {name}: {shown_url(url) if is_private and '$' not in url else url}"
    if entry.get("disabled") is True:
        yield "    disabled: it stays switched off"
    if entry.get("cwd"):
        yield f"    folder: {entry['cwd']}"
    for key, value in _texts(entry, "env"):
        is_shown = _VARIABLE.fullmatch(value) if is_private else "$" in value or not is_secret_name(key)
        yield f"    env: {key}={value if is_shown else HIDDEN}"
    for key, value in _texts(entry, "headers"):
        yield f"    header: {key}: {value if '$' in value else HIDDEN}"


def confirm(question: str, *, yes: bool) -> None:
    """Ask the user, unless they said yes already.

    Raises:
        BadInputError: no user can be asked.
        click.Abort: the user does not agree.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise BadInputError("expected --yes, because no user can be asked here; nothing was written")
    click.confirm(visible_line(question), abort=True)


def _texts(entry: Mapping[str, Any], key: str) -> Iterator[tuple[str, str]]:
    found: object = entry.get(key)
    if isinstance(found, dict):
        yield from ((str(name), str(value)) for name, value in cast("dict[str, object]", found).items())
