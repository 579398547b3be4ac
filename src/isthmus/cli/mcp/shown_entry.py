"""Shows an entry that somebody else wrote, whole, and has the user confirm it."""

import shlex
import sys
from collections.abc import Iterator, Mapping
from typing import Any, cast

import click

from isthmus.app.setup import BadInputError
from isthmus.mcp_host.config.secrets import HIDDEN, is_secret_name
from isthmus.text.visible import visible_line


def entry_lines(name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield all that the entry does. Values are hidden only where a secret is expected and no variable is named."""
    if "command" in entry:
        args = cast("list[str]", entry.get("args") or [])
        yield f"+ {name}: command: {shlex.join([str(entry['command']), *args])}"
    else:
        yield f"+ {name}: {entry.get('httpUrl') or entry.get('url')}"
    if entry.get("cwd"):
        yield f"    folder: {entry['cwd']}"
    for key, value in _texts(entry, "env"):
        yield f"    env: {key}={HIDDEN if is_secret_name(key) and '$' not in value else value}"
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
