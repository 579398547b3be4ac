"""The settings, frozen: Gemini CLI's files as they are, and what is ours alone under the key ``isthmus``.

Read from ``~/.gemini/settings.json`` and the project's ``.gemini/settings.json``; project over user, key by key. A
project's file cannot widen what runs without being asked: approval mode and allowed tools count only from the user's
own file. It names a model only in a trusted folder. No services here, and no defaults of the programs that use them.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from isthmus.amounts import AmountError, parse_size
from isthmus.errors import DecodeError, IsthmusError
from isthmus.files import read_regular
from isthmus.jsonc import JsoncError, parse
from isthmus.sandbox.settings import CommandSandbox, decode_command_sandbox

T = TypeVar("T", str, int, bool)

MAXIMUM_BYTES = 4 * 1024 * 1024
"""Of a settings file."""


class SettingsError(IsthmusError):
    """A settings file cannot be used; its text names the file, and line and column or the key."""


@dataclass(frozen=True, slots=True)
class ReadOnlyTools:
    """Which MCP servers' tools run without asking where they say that they only read; ``servers`` counts first."""

    everywhere: bool = False
    servers: Mapping[str, bool] = field(default_factory=dict[str, bool])

    def are_free(self, server: str) -> bool:
        """Whether those of a server are not asked about."""
        return self.servers.get(server, self.everywhere)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the files say; None where they say nothing.

    ``model`` is ``isthmus.model`` or ``model.name`` of the user's own file, ``project_model`` that of a trusted
    project's file: a name for the provider that is in use anyway. ``approval_mode`` is ``general.defaultApprovalMode``,
    ``allowed_tools`` is ``tools.allowed``, ``max_model_turns`` is ``model.maxSessionTurns`` (-1 there: no limit),
    ``compaction_share`` is ``model.compressionThreshold``, a share of the model's context window,
    ``tool_search`` and ``tool_search_share`` are ``isthmus.toolSearch`` (auto, always, never) and
    ``isthmus.toolSearchShare``. ``read_only_tools`` is ``isthmus.approval.readOnlyTools``, "allow" or "ask", or one of
    them for each server, and ``keeps_approvals`` is ``security.enablePermanentToolApproval``, both of the user's own
    file. ``sandbox`` is ``tools.sandbox`` of the user's own file,
    ``ide_enabled`` is ``ide.enabled``, ``context_files`` is ``context.fileName`` (one name or several).
    ``journal_maximum_size`` is ``isthmus.journal.maxSize`` in bytes, 0 for none; only the user's own file counts,
    since a project's would delete what belongs to others. ``token_store`` is ``isthmus.tokenStore`` there: where the
    logins to MCP servers are kept, ``file`` or ``keyring``. ``ignored`` holds a line for each value of the project's
    file that does not count.
    """

    model: str | None = None
    project_model: str | None = None
    approval_mode: str | None = None
    allowed_tools: tuple[str, ...] = ()
    max_model_turns: int | None = None
    compaction_share: float | None = None
    ide_enabled: bool | None = None
    context_files: tuple[str, ...] = ()
    journal_maximum_size: int | None = None
    token_store: str | None = None
    tool_search: str | None = None
    tool_search_share: float | None = None
    read_only_tools: ReadOnlyTools = field(default_factory=ReadOnlyTools)
    keeps_approvals: bool = False
    sandbox: CommandSandbox = field(default_factory=CommandSandbox)
    files: tuple[Path, ...] = ()
    ignored: tuple[str, ...] = ()


def user_settings_path(home: Path) -> Path:
    """``~/.gemini/settings.json``."""
    return home / ".gemini" / "settings.json"


def project_settings_path(project: Path) -> Path:
    """``.gemini/settings.json`` of a project."""
    return project / ".gemini" / "settings.json"


def load_settings(project: Path, home: Path, *, is_trusted: bool = False) -> Settings:
    """Return the settings for work in ``project`` by the user whose home folder is ``home``.

    ``is_trusted``: the user trusts the folder ``project``.

    Raises:
        SettingsError: a file is not JSON (line and column are named), or a value has the wrong type.
    """
    user_path, project_path = user_settings_path(home), project_settings_path(project)
    user = _read(user_path)
    own = None if _is_same(user_path, project_path) else _read(project_path)
    both = [_Source(path, found) for path, found in ((project_path, own), (user_path, user)) if found is not None]
    personal = [source for source in both if source.path == user_path]
    projects = [source for source in both if source.path == project_path]
    project_model, ignored = _project_model(projects, is_trusted=is_trusted)
    limit = _first(both, "model.maxSessionTurns", int)
    return Settings(
        model=_model(personal),
        project_model=project_model,
        approval_mode=_first(personal, "general.defaultApprovalMode", str),
        allowed_tools=tuple(_strings(personal, "tools.allowed")),
        max_model_turns=None if limit is None or limit < 0 else limit,
        compaction_share=_share(both, "model.compressionThreshold"),
        ide_enabled=_first(both, "ide.enabled", bool),
        context_files=_file_names(both, "context.fileName"),
        journal_maximum_size=_size(personal, "isthmus.journal.maxSize"),
        token_store=_choice(personal, "isthmus.tokenStore", ("file", "keyring")),
        tool_search=_choice(both, "isthmus.toolSearch", ("auto", "always", "never")),
        tool_search_share=_share(both, "isthmus.toolSearchShare"),
        read_only_tools=_read_only(personal, "isthmus.approval.readOnlyTools"),
        keeps_approvals=bool(_first(personal, "security.enablePermanentToolApproval", bool)),
        sandbox=_sandbox(personal),
        files=tuple(source.path for source in both),
        ignored=ignored,
    )


def _model(sources: "Sequence[_Source]") -> str | None:
    return _first(sources, "isthmus.model", str) or _first(sources, "model.name", str)


def _project_model(projects: "Sequence[_Source]", *, is_trusted: bool) -> tuple[str | None, tuple[str, ...]]:
    """Return the model's name that a project's file may give, and a line for one that does not count.

    A script's calls are the repository's words in the model's place, and a local server may be anybody's.
    """
    if not (name := (_model(projects) or "").strip()):
        return None, ()
    if not is_trusted:
        problem = "the folder is not trusted (`isthmus trust` changes that)"
    elif name.partition(":")[0].lower() in ("scripted", "ollama", "demo"):
        problem = "scripts and servers of this machine are chosen by -m or your own settings alone"
    else:
        return name, ()
    return None, (f"{projects[0].path} names the model {name[:200]!r}, which is not used: {problem}",)


@dataclass(frozen=True, slots=True)
class _Source:
    path: Path
    values: Mapping[str, Any]

    def get(self, key: str) -> object:
        found: object = self.values
        for name in key.split("."):
            found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
        return found


def settings_text(path: Path) -> str:
    """The text of a settings file, its line ends as ``\\n``. A project that was just cloned may have a link to a device
    there, which would never end.

    Raises:
        OSError: it cannot be read, is no regular file, or is larger than `MAXIMUM_BYTES`.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_regular(path, MAXIMUM_BYTES).decode().replace("\r\n", "\n").replace("\r", "\n")


def _read(path: Path) -> Mapping[str, Any] | None:
    try:
        text = settings_text(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    try:
        value: object = parse(text) if text.strip() else {}
    except JsoncError as error:
        raise SettingsError(f"{path}, {error}. Mend the file, or move it away.") from error
    if not isinstance(value, dict):
        raise SettingsError(f"{path}: expected an object {{...}} at the top, found {type(value).__name__}")
    return cast("Mapping[str, Any]", value)


def _is_same(first: Path, second: Path) -> bool:
    return os.path.realpath(first) == os.path.realpath(second)


def _first(sources: Sequence[_Source], key: str, kind: type[T]) -> T | None:
    for source in sources:
        value = source.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            expected = {str: "a string", int: "a whole number", bool: "true or false"}[kind]
            raise SettingsError(f"{source.path}: {key} is {value!r}; expected {expected}")
        return value
    return None


def _choice(sources: Sequence[_Source], key: str, choices: Sequence[str]) -> str | None:
    for source in sources:
        value = source.get(key)
        if value is not None and value not in choices:
            expected = " or ".join(f'"{choice}"' for choice in choices)
            raise SettingsError(f"{source.path}: {key} is {value!r}; expected {expected}")
        if value is not None:
            return str(value)
    return None


def _share(sources: Sequence[_Source], key: str) -> float | None:
    for source in sources:
        value = source.get(key)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise SettingsError(f"{source.path}: {key} is {value!r}; expected a number above 0, at most 1")
        return float(value)
    return None


def _read_only(sources: Sequence[_Source], key: str) -> ReadOnlyTools:
    words = {"allow": True, "ask": False}
    for source in sources:
        value = source.get(key)
        if value is None:
            continue
        rules = cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {"": value}
        for name, rule in rules.items():
            if not isinstance(rule, str) or rule not in words:
                where = f"{key}.{name}" if name else key
                raise SettingsError(f'{source.path}: {where} is {rule!r}; expected "allow" or "ask"')
        if isinstance(value, Mapping):
            return ReadOnlyTools(servers={name: words[str(rule)] for name, rule in rules.items()})
        return ReadOnlyTools(everywhere=words[str(value)])
    return ReadOnlyTools()


def _size(sources: Sequence[_Source], key: str) -> int | None:
    """Bytes, as a number or as text with a unit; 0 for "none"."""
    for source in sources:
        value = source.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if isinstance(value, str):
            try:
                return 0 if value == "none" else parse_size(value)
            except AmountError as error:
                raise SettingsError(f'{source.path}: {key}: {error}; "none" is no maximum') from error
        if value is not None:
            raise SettingsError(f'{source.path}: {key} is {value!r}; expected a size, e.g. "500MB", or "none"')
    return None


def _file_names(sources: Sequence[_Source], key: str) -> tuple[str, ...]:
    """One name of a file, or several; names alone, since each folder on the way is looked into."""
    for source in sources:
        value: object = source.get(key)
        if value is None:
            continue
        names = cast("list[object]", [value] if isinstance(value, str) else value)
        if not isinstance(value, (str, list)) or not all(isinstance(name, str) and _is_name(name) for name in names):
            raise SettingsError(f"{source.path}: {key} is {value!r}; expected a file's name without folders, or a list")
        return tuple(str(name) for name in names)
    return ()


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not set(name) & set("/\\\0")


def _sandbox(sources: Sequence[_Source]) -> CommandSandbox:
    for source in sources:
        tools = source.get("tools")
        if isinstance(tools, Mapping):
            try:
                return decode_command_sandbox(cast("Mapping[str, object]", tools), f"{source.path}: tools")
            except DecodeError as error:
                raise SettingsError(str(error)) from error
    return CommandSandbox()


def _strings(sources: Sequence[_Source], key: str) -> Sequence[str]:
    for source in sources:
        value: object = source.get(key)
        if value is None:
            continue
        if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
            raise SettingsError(f"{source.path}: {key} is {value!r}; expected a list of strings")
        return cast("list[str]", value)
    return ()
