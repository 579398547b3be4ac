"""Extensions of Gemini CLI that the user has installed: folders in ``~/.gemini/extensions``.

Read here: which there are and where they are switched off. What is in them is used like the user's own files, with the
least precedence. Not here: installing them, which Gemini CLI does.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Any

from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.settings import keys
from isthmus.settings.settings_file import SettingsError, SettingsSource
from isthmus.settings.sources import read_sources

MANIFEST = "gemini-extension.json"
ENABLEMENT = "extension-enablement.json"
INSTALLATION = ".gemini-extension-install.json"
MAXIMUM_EXTENSIONS = 100
"""Maximum number of extensions that are used."""
MAXIMUM_BYTES = 1_000_000
"""Maximum size of a manifest in bytes."""
DEFAULT_CONTEXT = "GEMINI.md"
_NAME = re.compile(r"[a-zA-Z0-9-]{1,100}")
_NOT_OF_SERVERS = ("trust", "headersHelper")
"""Keys that have no effect on a server of an extension; the shell would read the name of the workspace in a helper."""
_VARIABLE = re.compile(r"\$\{(extensionPath|workspacePath|/|pathSeparator)\}")


@record
class Extension:
    """An installed extension. ``folder`` (absolute) has its files.

    ``servers`` are entries of ``mcpServers``, ``context_files`` existing files with instructions, and
    ``excluded_tools`` entries of ``tools.exclude``. ``hooks`` maps events to hooks, as in the settings. ``guards``
    describes what it guards that is not applied here.
    """

    name: str
    version: str
    folder: Path
    is_enabled: bool = True
    servers: Mapping[str, object] | None = None
    context_files: tuple[Path, ...] = ()
    excluded_tools: tuple[str, ...] = ()
    hooks: Mapping[str, object] = field(default_factory=dict[str, object])
    guards: tuple[str, ...] = ()

    @property
    def manifest(self) -> Path:
        """Path of its manifest."""
        return self.folder / MANIFEST


@record
class Extensions:
    """The installed extensions by name, and reports about those that cannot be used."""

    installed: tuple[Extension, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def enabled(self) -> tuple[Extension, ...]:
        """Extensions that are not switched off in the workspace."""
        return tuple(extension for extension in self.installed if extension.is_enabled)


@record
class _Limits:
    """Limits that the settings of the user and the machine set on where extensions come from.

    ``allowed`` are lists of patterns; a source must match one of each. They replace ``blocks_git``.
    """

    is_off: bool = False
    blocks_git: bool = False
    allowed: tuple[tuple[re.Pattern[str], ...], ...] = ()

    def refusal(self, installation: Mapping[str, Any]) -> str | None:
        """Return why an extension that was installed like this is not used."""
        source = os.path.realpath(as_text(installation.get("source")))
        if not all(any(pattern.search(source) for pattern in patterns) for patterns in self.allowed):
            return "security.allowedExtensions does not allow where it comes from"
        if self.blocks_git and not self.allowed and installation.get("type") in ("git", "github-release"):
            return "security.blockGitExtensions forbids it"
        return None


def find_extensions(home: Path, workspace: Path, environment: Mapping[str, str] = os.environ) -> Extensions:
    """Return the extensions of the user with the home folder ``home``, as they count in ``workspace``. Blocking."""
    top = home / ".gemini" / "extensions"
    try:
        with os.scandir(top) as entries:
            names = sorted(islice((entry.name for entry in entries if entry.is_dir()), MAXIMUM_EXTENSIONS + 1))
    except OSError:
        return Extensions()
    try:
        limits = _limits(read_sources(workspace, home, environment, is_trusted=False).files_of_user)
    except SettingsError as error:
        return Extensions(problems=(f"no extension is used: {error}",))
    if limits.is_off:
        return Extensions()
    problems: list[str] = []
    if len(names) > MAXIMUM_EXTENSIONS:
        problems.append(f"{top}: only {MAXIMUM_EXTENSIONS} extensions are used")
    try:
        overrides = _overrides(top / ENABLEMENT)
    except (OSError, ValueError, RecursionError) as error:
        # It may switch off any of them.
        reason = error.strerror or error if isinstance(error, OSError) else error
        return Extensions(problems=(f"no extension is used, because {top / ENABLEMENT} cannot be read: {reason}",))
    found: dict[str, Extension] = {}
    for name in names[:MAXIMUM_EXTENSIONS]:
        folder = top / name
        try:
            installation = _installation(folder)
            if installation.get("type") == "link":
                folder = Path(as_text(installation.get("source")))
            elif not (folder / MANIFEST).is_file():
                continue
            if (refusal := limits.refusal(installation)) is not None:
                raise ValueError(refusal)
            extension = _read(folder, workspace, overrides)
        except (OSError, ValueError, RecursionError) as error:
            reason = error.strerror or error if isinstance(error, OSError) else error
            problems.append(f"the extension {name} is not used: {reason}")
            continue
        found.setdefault(extension.name, extension)
    return Extensions(tuple(found.values()), tuple(problems))


def _read(folder: Path, workspace: Path, overrides: Mapping[str, tuple[str, ...]]) -> Extension:
    value: object = json.loads(read_regular(folder / MANIFEST, MAXIMUM_BYTES))
    values = as_object(_hydrated(value, folder, workspace))
    name, version = as_text(values.get("name")), as_text(values.get("version"))
    if _NAME.fullmatch(name) is None or not version:
        raise ValueError(f"{MANIFEST}: expected name (letters, digits and dashes) and version")
    servers = {
        server: {key: item for key, item in as_object(entry).items() if key not in _NOT_OF_SERVERS}
        for server, entry in as_object(values.get("mcpServers")).items()
    }
    guards: list[str] = []
    try:
        hooks = _hooks(folder, workspace)
    except (OSError, ValueError, RecursionError):
        hooks = dict[str, object]()
        guards.append(f"hooks of the extension {name}, which cannot be read")
    return Extension(
        name,
        version,
        folder,
        _is_enabled(overrides.get(name, ()), workspace),
        servers,
        tuple(_context_files(values, folder)),
        tuple(text for entry in as_list(values.get("excludeTools")) if (text := as_text(entry))),
        hooks,
        tuple(guards),
    )


def _context_files(values: Mapping[str, Any], folder: Path) -> list[Path]:
    named = values.get("contextFileName")
    names = [as_text(item) for item in as_list(named)] or [as_text(named)]
    paths = [Path(os.path.realpath(folder / (name or DEFAULT_CONTEXT))) for name in names]
    return [path for path in paths if path.is_relative_to(os.path.realpath(folder)) and path.is_file()]


def _hooks(folder: Path, workspace: Path) -> Mapping[str, object]:
    path = folder / "hooks" / "hooks.json"
    if not path.exists():
        return {}
    value: object = json.loads(read_regular(path, MAXIMUM_BYTES))
    hooks: object = as_object(value).get("hooks")
    if not isinstance(hooks, Mapping):
        raise ValueError("expected an object hooks")
    return as_object(_hydrated(_with_shell_variable(as_object(value)["hooks"]), folder, workspace))


def _with_shell_variable(value: object) -> object:
    """Return hooks in whose commands the shell itself inserts the workspace, since its name may be any text."""
    if items := as_list(value):
        return [_with_shell_variable(item) for item in items]
    if fields := as_object(value):
        return {
            name: item.replace("${workspacePath}", "${GEMINI_PROJECT_DIR}")
            if name == "command" and isinstance(item, str)
            else _with_shell_variable(item)
            for name, item in fields.items()
        }
    return value


def _installation(folder: Path) -> Mapping[str, Any]:
    """Return the note of Gemini CLI on how an extension was installed; empty if there is none."""
    try:
        return as_object(json.loads(read_regular(folder / INSTALLATION, MAXIMUM_BYTES)))
    except FileNotFoundError:
        return {}


def _limits(files: Sequence[SettingsSource]) -> _Limits:
    key = keys.ALLOWED_EXTENSIONS
    allowed: list[tuple[re.Pattern[str], ...]] = []
    for source, patterns in key.read(files):
        try:
            allowed += [tuple(map(re.compile, patterns))] if patterns else []
        except re.error as error:
            raise SettingsError(f"{source.path}: {key.name}: expected regular expressions: {error}") from error
    return _Limits(
        not keys.EXTENSIONS_ENABLED.read(files),
        keys.BLOCK_GIT_EXTENSIONS.read(files),
        tuple(allowed),
    )


def _overrides(path: Path) -> Mapping[str, tuple[str, ...]]:
    try:
        values = as_object(json.loads(read_regular(path, MAXIMUM_BYTES)))
    except FileNotFoundError:
        return {}
    return {
        name: tuple(text for rule in as_list(as_object(entry).get("overrides")) if (text := as_text(rule)))
        for name, entry in values.items()
    }


def _is_enabled(rules: tuple[str, ...], workspace: Path) -> bool:
    """Return whether the last rule that is about a folder lets the extension work there; ``!`` switches it off."""
    enabled = True
    here = _with_slashes(str(workspace))
    for rule in rules:
        is_off = rule.startswith("!")
        base = rule.removeprefix("!")
        below = base.endswith("*")
        base = _with_slashes(base.removesuffix("*"))
        if here == base or (below and here.startswith(base)):
            enabled = not is_off
    return enabled


def _with_slashes(path: str) -> str:
    return "/" + path.replace("\\", "/").strip("/") + "/" if path.strip("/") else "/"


def _hydrated(value: object, folder: Path, workspace: Path) -> object:
    """Return a value with the variables of Gemini CLI in its texts replaced."""
    known = {"extensionPath": str(folder), "workspacePath": str(workspace), "/": os.sep, "pathSeparator": os.sep}
    if isinstance(value, str):
        return _VARIABLE.sub(lambda match: known[match[1]], value)
    if items := as_list(value):
        return [_hydrated(item, folder, workspace) for item in items]
    if fields := as_object(value):
        return {name: _hydrated(item, folder, workspace) for name, item in fields.items()}
    return value
