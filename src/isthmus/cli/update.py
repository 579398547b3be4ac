"""``isthmus update``: how this installation was made, and the command that updates it. It changes nothing."""

import json
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import click

from isthmus.record import record

PACKAGE = "isthmus"
_FILE = "FILE.whl"


@record
class Installation:
    """Facts of an installation. ``source`` is the URL that it was installed from, empty for a package index.

    ``installer`` is the name of the program that unpacked it, such as ``pip``; ``names`` are those in the folder
    ``prefix`` of its environment.
    """

    prefix: str
    python: str
    names: frozenset[str]
    installer: str = ""
    source: str = ""
    is_editable: bool = False


@record
class Way:
    """A way to update. ``by`` says how the installation was made; ``commands`` are lines for a shell."""

    by: str
    commands: tuple[str, ...]


def way_of(found: Installation) -> Way:
    """Return how an installation is updated."""
    path = _path(found.source)
    if found.is_editable:
        again = f"{_quoted(found.python)} -m pip install --editable {_quoted(path)}"
        return Way(f"from the sources in {path}", (f"git -C {_quoted(path)} pull", again))
    newer = _FILE if found.source else ""
    if "uv-receipt.toml" in found.names:
        update = f"uv tool install --force {newer}" if newer else f"uv tool upgrade {PACKAGE}"
        return Way(f"by uv as a tool in {found.prefix}", (update,))
    if "pipx_metadata.json" in found.names:
        update = f"pipx install --force {newer}" if newer else f"pipx upgrade {PACKAGE}"
        return Way(f"by pipx in {found.prefix}", (update,))
    if "archive-v0" in Path(found.prefix).parts:
        update = f"uvx --from {newer} {PACKAGE}" if newer else f"uvx {PACKAGE}@latest"
        return Way("by uvx for this run", (update,))
    target = newer or f"--upgrade {PACKAGE}"
    if found.installer == "uv":
        return Way(f"by uv in {found.prefix}", (f"uv pip install --python {_quoted(found.python)} {target}",))
    return Way(
        f"by {found.installer or 'pip'} in {found.prefix}", (f"{_quoted(found.python)} -m pip install {target}",)
    )


def installation() -> Installation:
    """Return the facts of the installation that runs."""
    prefix = Path(sys.prefix)
    names = frozenset(path.name for path in prefix.iterdir()) if prefix.is_dir() else frozenset[str]()
    try:
        own = distribution(PACKAGE)
    except PackageNotFoundError:
        folder = Path(__file__).resolve().parents[3]
        return Installation(sys.prefix, sys.executable, names, source=folder.as_uri(), is_editable=True)
    origin = _origin(own.read_text("direct_url.json"))
    url, folder = origin.get("url"), origin.get("dir_info")
    return Installation(
        sys.prefix,
        sys.executable,
        names,
        (own.read_text("INSTALLER") or "").strip(),
        url if isinstance(url, str) else "",
        isinstance(folder, Mapping) and cast("Mapping[str, Any]", folder).get("editable") is True,
    )


@click.command("update")
@click.option("--json", "as_json", is_flag=True, help="Print the facts as one JSON object.")
def command(as_json: bool) -> None:
    """Say how this program was installed, and print the command that updates it.

    Nothing is changed, and no data is sent. Programs that run keep their version until they are started again.
    """
    from isthmus import __version__
    from isthmus.text.visible import visible

    found = installation()
    way = way_of(found)
    if as_json:
        facts = {"version": __version__, "installed": way.by, "commands": list(way.commands), "source": found.source}
        click.echo(json.dumps(facts))
        return
    lines = [f"Isthmus {__version__} was installed {way.by}."]
    if found.source and not found.is_editable:
        lines.append(f"It came from {found.source}; {_FILE} below is the file of the newer version.")
    lines += ["", *(f"  {line}" for line in way.commands), "", "Programs that run keep their version until they end."]
    click.echo(visible("\n".join(lines)))


def _origin(text: str | None) -> Mapping[str, Any]:
    try:
        found: object = json.loads(text or "{}")
    except ValueError:
        return {}
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _path(url: str) -> str:
    """Return the path of a file URL; other URLs as they are."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else url


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
