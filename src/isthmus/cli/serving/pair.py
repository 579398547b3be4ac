"""``isthmus serve pair``: a code, a link and a QR code that let one browser in to a server that runs."""

import json
import sys
from pathlib import Path
from typing import Any, cast

import click

from isthmus.programs.setup.setup import BadInputError, GivenOptions, data_directory
from isthmus.text.visible import visible_line

TIMEOUT_SECONDS = 10.0
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("pair")
@click.option(
    "--url", metavar="URL", help="The server. Default: the one that runs on this machine with this data folder."
)
@click.option("--token-file", type=_FILE, metavar="FILE", help="File with your token. Default: in the data folder.")
@click.option("--ca-file", type=_FILE, metavar="FILE", help="CA certificates (PEM) for an https server with its own.")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The server's data folder. Default: your data folder.",
)
def command(url: str | None, token_file: Path | None, ca_file: Path | None, data_dir: Path | None) -> None:
    """Let another browser in to the workbench of a server that runs.

    Prints a code to type, and, if other devices reach the server, a link and its QR code. They let one browser in,
    within a minute. The server must have been started with --ui, or by `isthmus web`.

    \b
    isthmus serve pair
    isthmus serve pair --url https://agent.example.org/
    """
    from isthmus.a2a.token_file import TOKEN_FILE, read_token_file
    from isthmus.programs.serve.serving_pages import can_show_qr
    from isthmus.web.pairing.links import HOW_TO_REACH, entry_link, is_reachable

    folder = data_directory(GivenOptions(data_dir=data_dir))
    base, announced_token = (url, None) if url is not None else _running(folder)
    token = read_token_file(token_file or announced_token or folder / TOKEN_FILE)
    code, link = _new_code(base, token, ca_file)
    sys.stdout.write(f"Code: {code[:4]} {code[4:]}\nIt lets one browser in, within a minute.\n")
    shown = link.partition("/ui/#code=")[0] + "/"
    if not is_reachable(shown):
        sys.stdout.write(f"{shown}ui/\n{HOW_TO_REACH}\n")
        return
    drawn = entry_link(shown, code)
    sys.stdout.write(f"{drawn.url}\n")
    if drawn.qr is not None and can_show_qr(sys.stdout):
        sys.stdout.write(drawn.qr.as_terminal_text())


def _running(folder: Path) -> tuple[str, Path]:
    """Return URL and token file of the server that runs with a data folder.

    Raises:
        BadInputError: none is known.
    """
    from isthmus.programs.serve.running_servers import running_servers

    for server in running_servers():
        if server.data_dir.resolve() == folder:
            return server.url, server.token_file
    raise BadInputError(
        f"no server with the data folder {folder} is known to run on this machine: give --url URL (servers with TLS,"
        " with another agent, or at an address that is not loopback need it), or start one: isthmus serve --ui"
    )


def _new_code(base: str, token: str, ca_file: Path | None) -> tuple[str, str]:
    """Return a new code from a server, and the link for it.

    Raises:
        BadInputError: the server was not reached, or gives none.
    """
    import httpx2

    from isthmus.a2a.client.card import authorities

    try:
        with httpx2.Client(
            timeout=TIMEOUT_SECONDS,
            verify=authorities(ca_file, is_encrypted=base.startswith("https:")),
            trust_env=False,
        ) as client:
            answer = client.post(
                f"{base.rstrip('/')}/ui/api/codes",
                json={"origin": _origin(base)},
                headers={"Authorization": f"Bearer {token}"},
            )
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise BadInputError(f"--url {base}: the server was not reached: {error}") from error
    try:
        found: Any = json.loads(answer.content)
    except ValueError:
        found = None
    values = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    code, link = values.get("code"), values.get("link")
    if answer.status_code == 200 and isinstance(code, str) and isinstance(link, str):
        return visible_line(code), visible_line(link)
    if answer.status_code == 404:
        raise BadInputError(f"{base} has no workbench: start the server with --ui")
    reason = visible_line(str(values.get("error", "it did not answer as a server of Isthmus does")))
    raise BadInputError(f"{base} gave no code (status {answer.status_code}): {reason}")


def _origin(base: str) -> str:
    from isthmus.web.pairing.links import is_origin

    origin = "/".join(base.split("/")[:3])
    return origin if is_origin(origin) else ""
