"""Settings of agent CLIs that decide whether they use an editor at all: IDE mode, and the mode in which they start.

Gemini CLI and Qwen Code merge four files, Claude Code four others; a later one wins. A file that cannot be read, or is
not JSON, counts as empty: its CLI reports it itself. None of these files is changed: :func:`ide_mode_defaults` writes
a file of our own, which Qwen Code reads before all others.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.files.atomic import read_regular
from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.claude.finding import CONFIGURATION_VARIABLE
from isthmus.ide.discovery.announcement import Protocol
from isthmus.ide.gemini.qwen_lock import qwen_directory

MAXIMUM_BYTES = 1024 * 1024
"""Maximum size of a settings file; a larger one counts as empty."""
AUTOMATIC_MODES = frozenset({"auto", "auto-edit", "auto_edit", "yolo", "acceptEdits", "bypassPermissions", "dontAsk"})
"""Modes, by their names in settings, in which a CLI writes files without asking, and so shows no diff."""

IDE_MODE_IS_OFF = "its IDE mode is off"

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Cli:
    """Gemini CLI, or its descendant. ``mode`` is the mode in which it starts unless a setting says otherwise."""

    protocol: Protocol
    name: str
    variables: str
    mode_key: str
    mode: str

    def user_folder(self, environment: Mapping[str, str]) -> Path:
        """Return the folder of the user's own settings."""
        if self.protocol is Protocol.QWEN:
            return qwen_directory(environment)
        return Path(environment.get("GEMINI_CLI_HOME") or _home(environment)) / ".gemini"

    def system_file(self, environment: Mapping[str, str]) -> Path:
        """Return the machine's settings file, which overrides all others."""
        if named := environment.get(f"{self.variables}_SYSTEM_SETTINGS_PATH"):
            return Path(named)
        mac = "GeminiCli" if self.protocol is Protocol.GEMINI else "QwenCode"
        on_mac = sys.platform == "darwin"
        return (Path("/Library/Application Support") / mac if on_mac else Path("/etc") / self.name) / "settings.json"

    def defaults_file(self, environment: Mapping[str, str]) -> Path:
        """Return the machine's file of defaults, which all others override."""
        named = environment.get(f"{self.variables}_SYSTEM_DEFAULTS_PATH")
        return Path(named) if named else self.system_file(environment).with_name("system-defaults.json")


GEMINI = _Cli(Protocol.GEMINI, "gemini-cli", "GEMINI_CLI", "general.defaultApprovalMode", "default")
QWEN = _Cli(Protocol.QWEN, "qwen-code", "QWEN_CODE", "tools.approvalMode", "auto")


def remarks(folder: Path, environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return, by the CLI's name, what the settings keep a CLI started in ``folder`` from, and what to do."""
    found = {cli.protocol.value: tuple(_of_gemini(cli, folder, environment)) for cli in (GEMINI, QWEN)}
    return found | {Protocol.CLAUDE.value: tuple(_of_claude(folder, environment))}


def ide_mode_defaults(environment: Mapping[str, str], own_folder: Path) -> dict[str, str]:
    """Return the variable with which Qwen Code starts in IDE mode, unless the user's own settings say otherwise.

    It names a file that is written to ``own_folder``: the machine's defaults, with IDE mode on. A machine whose
    defaults set IDE mode, or cannot be read, keeps them. Gemini CLI takes such a file only from root, and warns of any
    other.
    """
    path = QWEN.defaults_file(environment)
    values = _read(path)
    ide = (values or {}).get("ide", {})
    if (values is None and path.exists()) or not isinstance(ide, Mapping) or "enabled" in ide:
        return {}
    own = own_folder / "qwen-code-defaults.json"
    try:
        make_private_directory(own_folder)
        write_private(own, {**(values or {}), "ide": {**cast("Settings", ide), "enabled": True}})
    except OSError:  # then the CLI asks the user, as without us
        return {}
    return {"QWEN_CODE_SYSTEM_DEFAULTS_PATH": str(own)}


def gemini_ide_mode(folder: Path, environment: Mapping[str, str]) -> str | None:
    """Return what to do so that a Gemini CLI started in ``folder`` uses an editor; None if its IDE mode is on."""
    found = (remark for remark in _of_gemini(GEMINI, folder, environment) if IDE_MODE_IS_OFF in remark)
    return next(found, None)


def _of_gemini(cli: _Cli, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    user = cli.user_folder(environment) / "settings.json"
    project = folder / user.parent.name / "settings.json"
    files = (cli.defaults_file(environment), user, project, cli.system_file(environment))
    merged = [values for path in files if (values := _read(path)) is not None]
    if _last(merged, "ide.enabled") is not True:
        advice = f"{IDE_MODE_IS_OFF}: set ide.enabled to true in {user}, or enter /ide enable in it and start it again"
        if _last(merged, "ide.hasSeenNudge") is not True:
            advice += ". To its question whether to connect an editor answer No: Yes looks for an extension to install"
        yield advice
    mode = _last(merged, cli.mode_key, cli.mode)
    if mode in AUTOMATIC_MODES:
        yield (
            f"it starts in the mode {mode}, in which it shows no diffs: Shift+Tab changes it, "
            f"`--approval-mode default` or {cli.mode_key} = default in {user} starts it in the one that asks"
        )


def _of_claude(folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    user = Path(environment.get(CONFIGURATION_VARIABLE) or _home(environment) / ".claude") / "settings.json"
    managed = "/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code"
    project = folder / ".claude"
    files = (
        user, project / "settings.json", project / "settings.local.json", Path(managed) / "managed-settings.json",
    )  # fmt: skip
    mode = _last([values for path in files if (values := _read(path)) is not None], "permissions.defaultMode")
    if mode is None or mode in AUTOMATIC_MODES:
        starts = "it starts in auto mode (2.1.283 and later)" if mode is None else f"it starts in the mode {mode}"
        yield (
            f"{starts}, in which it shows no diffs: Shift+Tab changes it, `claude --permission-mode default` or "
            f"permissions.defaultMode = default in {user} starts it in the one that asks"
        )


def _last(files: Sequence[Settings], key: str, otherwise: object = None) -> object:
    """Return the value of the last file that has one."""
    for values in reversed(files):
        found: object = values
        for name in key.split("."):
            found = cast("Mapping[str, object]", found).get(name) if isinstance(found, Mapping) else None
        if found is not None:
            return found
    return otherwise


def _read(path: Path) -> Settings | None:
    try:
        value: object = parse(read_regular(path, MAXIMUM_BYTES).decode())
    except (OSError, UnicodeDecodeError, JsoncError):
        return None
    return cast("Settings", value) if isinstance(value, dict) else None


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - without a home it stays as it is
