"""Asks npm and PyPI for the version behind a name such as ``latest``, so that an entry names what was looked at."""

from typing import Any, cast
from urllib.parse import quote

from isthmus.cli.mcp.registry import RegistryError, get_json
from isthmus.mcp_host.config.registry_entry import RegistryEntryError

NPM = "https://registry.npmjs.org"
PYPI = "https://pypi.org"


def find_version(kind: str, identifier: str, name: str) -> str:
    """Return the version of a package of npm (``npm``) or PyPI (``pypi``) that has this name now.

    Raises:
        RegistryEntryError: there is none, or the place cannot be asked.
    """
    base, path = (
        (PYPI, f"/pypi/{identifier}/json") if kind == "pypi" else (NPM, f"/{quote(identifier, safe='@')}/{name}")
    )
    where = f"the {kind} package {identifier}"
    if kind == "pypi" and name != "latest":
        raise RegistryEntryError(f"{where}: expected a fixed version, received {name!r}")
    try:
        answer = get_json(base, path, missing=f"{base} has no {identifier} {name}")
    except RegistryError as error:
        raise RegistryEntryError(f"{where}: its version {name} is not known: {error}") from error
    found: object = answer.get("info") if kind == "pypi" else answer
    version: object = cast("dict[str, Any]", found).get("version") if isinstance(found, dict) else None
    if not isinstance(version, str):
        raise RegistryEntryError(f"{where}: {base} names no version {name}")
    return version
