"""Reads variables from ``.env`` files, as Gemini CLI does, for those that the environment does not have.

The user's own file is ``~/.gemini/.env``, else ``~/.env``; the latter may set all variables except a few. A project's
file is the nearest one from the workspace upwards. It is read only in a trusted folder, and only for keys of model
providers: an address or a proxy in it could send the user's keys elsewhere. Blocks.
"""

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from pathlib import Path

from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.runtime.model_keys import MODEL_KEY_VARIABLES
from isthmus.settings.keys import EXCLUDED_VARIABLES
from isthmus.settings.trust.agreements import new_items
from isthmus.settings.trust.items import ItemKind, ProjectItem

MAXIMUM_BYTES = 64 * 1024
"""Maximum size of a .env file in bytes."""
ENV_FILES = (".gemini/.env", ".env")
"""Files of variables in a folder, of which the first that exists counts."""
PROJECT_VARIABLES = (*MODEL_KEY_VARIABLES, "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION")
"""Variables that are read from the file of a trusted project."""

_LINE = re.compile(r"[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


@record
class LoadedEnvironment:
    """An environment with the variables of .env files; ``problems`` has a line for each file that could not be read."""

    variables: Mapping[str, str] = field(repr=False)
    problems: tuple[str, ...] = ()


def load_environment(
    environment: Mapping[str, str],
    home: Path,
    workspace: Path | None = None,
    trusts: Callable[[Path], bool] = lambda _: False,
    excluded: Collection[str] = EXCLUDED_VARIABLES,
) -> LoadedEnvironment:
    """Return the environment with the variables of the user's .env file, and of one in a trusted `workspace`."""
    found = dict(environment)
    problems: list[str] = []
    for folder, file in _first(_project_files(workspace, home, trusts) if workspace is not None else iter(())):
        given = _read(folder / file, problems)
        items = [variable_item(file, name, given[name]) for name in PROJECT_VARIABLES if given.get(name)]
        new = [item.name for item in new_items(items, folder)]
        if new:
            problems.append(f"{folder / file}: not used, because it is new or changed: {', '.join(new)}")
        found = {name: given[name] for name in PROJECT_VARIABLES if given.get(name) and name not in new} | found
    for folder, file in _first((home, file) for file in ENV_FILES):
        left_out = excluded if file == ".env" else ()
        given = _read(folder / file, problems)
        found = {name: value for name, value in given.items() if name not in left_out} | found
    return LoadedEnvironment(found, tuple(problems))


def parse_env(text: str) -> dict[str, str]:
    """Return the variables of a .env file's text; other lines are ignored, and the last value of a variable counts."""
    found: dict[str, str] = {}
    place = 0
    while place < len(text):
        match = _LINE.match(text, place)
        end = _line_end(text, place)
        if match is None:
            place = end + 1
            continue
        start = match.end()
        quote = text[start : start + 1]
        close = _closing(text, start) if quote in ("'", '"', "`") else -1
        if close >= 0:
            inner = text[start + 1 : close]
            value = re.sub(r"\\(.)", lambda one: _ESCAPED.get(one[1], one[0]), inner) if quote == '"' else inner
            end = _line_end(text, close)
        else:
            value = re.split(r"\s#", text[start:end], maxsplit=1)[0].strip()
        if "\0" not in value:
            found[match[1]] = value
        place = end + 1
    return found


def _closing(text: str, start: int) -> int:
    """Return the index of the quote that closes the one at `start`, maybe lines later; -1 if there is none."""
    place, quote = start + 1, text[start]
    while (place := text.find(quote, place)) >= 0:
        if quote != '"' or text[place - 1] != "\\":
            return place
        place += 1
    return -1


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def variable_item(file: str, name: str, value: str) -> ProjectItem:
    """Return the item of a variable in one of a project's `ENV_FILES`."""
    return ProjectItem(ItemKind.VARIABLE, file, name, value)


def _project_files(workspace: Path, home: Path, trusts: Callable[[Path], bool]) -> Iterator[tuple[Path, str]]:
    """Yield folders with possible .env files, nearest first: trusted ones, up to the home folder and without it."""
    for folder in (workspace, *workspace.parents):
        if folder == home:
            return
        if trusts(folder):
            yield from ((folder, file) for file in ENV_FILES)


def _first(files: Iterator[tuple[Path, str]]) -> Iterator[tuple[Path, str]]:
    """Yield the first of these files that exists, if any, as a folder and the path in it."""
    return itertools.islice(((folder, file) for folder, file in files if (folder / file).exists()), 1)


def _read(path: Path, problems: list[str]) -> dict[str, str]:
    try:
        text = read_regular(path, MAXIMUM_BYTES).decode("utf-8-sig")
    except OSError as error:
        problems.append(f"{path} is not used: {error.strerror or error}")
        return {}
    except UnicodeDecodeError:
        problems.append(f"{path} is not used: it is not UTF-8")
        return {}
    return parse_env(text.replace("\r\n", "\n"))
