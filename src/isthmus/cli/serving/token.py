"""``isthmus serve token``: the tokens of a server's users. Running servers notice each change by themselves."""

import contextlib
import os
import re
import sys
import time
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from isthmus.cli.arguments.command_groups import SuggestingGroup
from isthmus.programs.setup.setup import BadInputError, GivenOptions, data_directory
from isthmus.text.visible import visible_line

if TYPE_CHECKING:
    from isthmus.a2a.server.users.users import TokenEntry, UserTable
    from isthmus.a2a.server.users.users_file import UsersFile

_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_LONGEST_SECONDS = 100 * 365 * 86_400


def tier_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a tier, as a click callback.

    Raises:
        BadInputError: it is not a valid name.
    """
    if value is not None and not (len(value.strip()) > 0 and len(value) <= 64 and value.isprintable()):
        raise BadInputError(f"tier {value[:100]!r}: expected a name of 1 to 64 printable characters")
    return value


@click.group("token", cls=SuggestingGroup)
def command() -> None:
    """Give other users access to the server, each with a token, tasks and limits of their own.

    A user sees only the tasks made with a token of the same name. Tokens are shown once and stored as hashes. Servers
    admit users only when --workspace or --allow-workspace says which folders they may work in.
    """


_data_dir = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The server's data folder. Default: your data folder.",
)


@command.command("add")
@click.argument("name")
@click.option("--expires", default="never", metavar="TIME", help="E.g. 12h, 90d, 2027-01-31, never (the default).")
@click.option("--max-tasks", type=click.IntRange(min=1), metavar="N", help="Maximum number of unfinished tasks.")
@click.option("--max-running", type=click.IntRange(min=1), metavar="N", help="Maximum number of tasks at work at once.")
@click.option(
    "--max-open", type=click.IntRange(min=1), metavar="N", help="Maximum number of open requests and streams."
)
@click.option("--max-request", type=click.IntRange(min=1000), metavar="BYTES", help="Maximum size of one request.")
@click.option("--max-requests-a-minute", type=click.IntRange(min=1), metavar="N", help="Requests in a minute.")
@click.option("--max-tokens-a-day", type=click.IntRange(min=1), metavar="N", help="Model tokens in a day (UTC).")
@click.option(
    "--max-usd-a-day",
    type=click.FloatRange(min=0, min_open=True),
    metavar="AMOUNT",
    help="US dollars that models may cost in a day (UTC).",
)
@click.option("--tier", metavar="NAME", callback=tier_name, help="The user's tier, sent to clients as user_tier.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the token to this new file, which only you can read, and do not print it.",
)
@_data_dir
def add(
    name: str,
    expires: str,
    tier: str | None,
    out: Path | None,
    data_dir: Path | None,
    **maxima: Any,
) -> None:
    """Create a token for the user NAME and print it, or write it to a file; it is shown only once.

    These limits replace the server's, which apply otherwise. A user may have several tokens.

    \b
    isthmus serve token add alice --expires 90d --out alice.token
    isthmus connect https://agent.example.org/ --token-file alice.token
    """
    from isthmus.a2a.server.users.users import Caps

    now = time.time()
    until = expiry(expires, now)
    caps = Caps(**maxima)
    users = _file(data_dir)

    def change(table: "UserTable") -> "tuple[UserTable, tuple[TokenEntry, str]]":
        changed, entry, token = table.added(name, now, until, caps, tier)
        return changed, (entry, token)

    with _output(out) as output:
        entry, token = users.change(change)
        output.write(f"{token}\n")
        output.flush()
    until_text = "does not expire" if until is None else f"expires {_day(until)}"
    sys.stderr.write(f"The token {entry.id} of {name} {until_text}. It is not shown again.\n")


@contextlib.contextmanager
def _output(path: Path | None) -> Generator[TextIO]:
    """Open the output for a token: standard output, or a new file, which is removed when no token was made.

    Raises:
        BadInputError: the file exists already, or cannot be written; no token was made.
    """
    if path is None:
        yield sys.stdout
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadInputError(
            f"--out {path}: {error.strerror}; name a file that can be made; no token was made"
        ) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            yield file
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@command.command("list")
@_data_dir
def list_tokens(data_dir: Path | None) -> None:
    """List the tokens: id, user, creation, expiry, limits, and for browsers that were paired the device's name.

    The tokens themselves are not stored.
    """
    entries = sorted(_file(data_dir).read().entries.values(), key=lambda entry: (entry.name, entry.created))
    now = time.time()
    width = max((len(_owner(entry)) for entry in entries), default=0)
    for entry in entries:
        if entry.expires is None:
            until = "never expires"
        else:
            until = f"{'EXPIRED' if entry.expires <= now else 'expires'} {_day(entry.expires)}"
        caps = entry.caps
        named = (
            ("tasks", caps.max_tasks),
            ("running", caps.max_running),
            ("open", caps.max_open),
            ("request bytes", caps.max_request),
            ("requests a minute", caps.max_requests_a_minute),
            ("tokens a day", caps.max_tokens_a_day),
            ("US dollars a day", caps.max_usd_a_day),
            ("tier", entry.tier),
            ("device", visible_line(entry.device) or None),
        )
        limits = ", ".join(f"{label} {value}" for label, value in named if value is not None)
        line = f"{entry.id}  {_owner(entry):<{width}}  made {_day(entry.created)}  {until:<18}  {limits}"
        sys.stdout.write(line.rstrip() + "\n")
    if not entries:
        sys.stdout.write("No tokens yet. Create one: isthmus serve token add NAME\n")


@command.command("revoke")
@click.argument("name_or_id")
@_data_dir
def revoke(name_or_id: str, data_dir: Path | None) -> None:
    """Revoke a token by its id, or all tokens of a user by the name. Their streams end; tasks stay."""
    gone = _file(data_dir).change(lambda table: table.revoked(name_or_id))
    for entry in gone:
        device = f" (device {visible_line(entry.device)})" if entry.device else ""
        sys.stdout.write(f"Revoked the token {entry.id} of {_owner(entry)}{device}.\n")


def expiry(text: str, now: float) -> float | None:
    """Return the Unix time of an ``--expires`` value; None for never.

    Raises:
        BadInputError: it is not a time, or not in the future.
    """
    if text == "never":
        return None
    until: float | None = None
    if (found := re.fullmatch(r"(\d{1,6})([mhdw])", text)) is not None:
        until = now + int(found[1]) * _UNITS[found[2]]
    else:
        try:
            day = datetime.fromisoformat(text)
            until = (day if day.tzinfo is not None else day.replace(tzinfo=UTC)).timestamp()
        except ValueError:
            until = None
    if until is None:
        raise BadInputError(f"--expires {text!r}: expected e.g. 12h, 90d, 8w, a day such as 2027-01-31, or never")
    if not now < until <= now + _LONGEST_SECONDS:
        raise BadInputError(f"--expires {text!r}: expected a time in the next hundred years")
    return until


def _file(data_dir: Path | None) -> "UsersFile":
    from isthmus.a2a.server.users.users_file import FILE, UsersFile

    return UsersFile(data_directory(GivenOptions(data_dir=data_dir)) / FILE)


def _owner(entry: "TokenEntry") -> str:
    """Return the name of a token's user; the owner's devices have an empty one."""
    return entry.name or "(you)"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
