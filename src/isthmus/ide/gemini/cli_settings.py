"""Settings of Gemini CLI and Qwen Code that determine whether they use an editor: IDE mode and start mode.

Each CLI merges four files; later files override earlier ones. :func:`ide_mode_defaults` writes our own file, which Qwen
Code reads before all others.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.cli_settings import AUTOMATIC_MODES, Settings, home_folder, last_value, read_all, read_settings
from isthmus.ide.gemini.qwen_lock import qwen_directory
from isthmus.record import record

IDE_MODE_IS_OFF = "its IDE mode is off"


@record
class _Cli:
    """Paths and keys of the settings of Gemini CLI or its descendant.

    ``mode`` is the start mode if the setting ``mode_key`` is missing.
    """

    name: str
    name_on_mac: str
    variables: str
    user_folder: Callable[[Mapping[str, str]], Path]
    mode_key: str
    mode: str

    def system_file(self, environment: Mapping[str, str]) -> Path:
        """Return the system settings file, which overrides all others."""
        if named := environment.get(f"{self.variables}_SYSTEM_SETTINGS_PATH"):
            return Path(named)
        on_mac = sys.platform == "darwin"
        folder = Path("/Library/Application Support") / self.name_on_mac if on_mac else Path("/etc") / self.name
        return folder / "settings.json"

    def defaults_file(self, environment: Mapping[str, str]) -> Path:
        """Return the system defaults file, which all others override."""
        named = environment.get(f"{self.variables}_SYSTEM_DEFAULTS_PATH")
        return Path(named) if named else self.system_file(environment).with_name("system-defaults.json")


def _gemini_folder(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("GEMINI_CLI_HOME") or home_folder(environment)) / ".gemini"


_GEMINI = _Cli("gemini-cli", "GeminiCli", "GEMINI_CLI", _gemini_folder, "general.defaultApprovalMode", "default")
_QWEN = _Cli("qwen-code", "QwenCode", "QWEN_CODE", qwen_directory, "tools.approvalMode", "auto")


def gemini_remarks(folder: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the restrictions by settings on a Gemini CLI started in ``folder``, with advice."""
    return tuple(_remarks(_GEMINI, folder, environment))


def qwen_remarks(folder: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the restrictions by settings on a Qwen Code started in ``folder``, with advice."""
    return tuple(_remarks(_QWEN, folder, environment))


def ide_mode_defaults(environment: Mapping[str, str], own_folder: Path) -> dict[str, str]:
    """Return the environment variable that starts Qwen Code in IDE mode, unless the user's settings disable it.

    It names a file in ``own_folder``, which this function writes: the system defaults with IDE mode on. System defaults
    that set IDE mode or cannot be read are kept. Gemini CLI accepts the named file only from root, and warns about
    others.
    """
    path = _QWEN.defaults_file(environment)
    values = read_settings(path)
    ide = (values or {}).get("ide", {})
    if (values is None and path.exists()) or not isinstance(ide, Mapping) or "enabled" in ide:
        return {}
    own = own_folder / "qwen-code-defaults.json"
    try:
        make_private_directory(own_folder)
        write_private(own, {**(values or {}), "ide": {**cast("Settings", ide), "enabled": True}})
    except OSError:  # the CLI then asks the user, as it does without us
        return {}
    return {"QWEN_CODE_SYSTEM_DEFAULTS_PATH": str(own)}


def gemini_ide_mode(folder: Path, environment: Mapping[str, str]) -> str | None:
    """Return the advice to turn on IDE mode for a Gemini CLI started in ``folder``; None if it is on."""
    found = (remark for remark in _remarks(_GEMINI, folder, environment) if IDE_MODE_IS_OFF in remark)
    return next(found, None)


def _remarks(cli: _Cli, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    user = cli.user_folder(environment) / "settings.json"
    project = folder / user.parent.name / "settings.json"
    files = (cli.defaults_file(environment), user, project, cli.system_file(environment))
    merged = read_all(files)
    if last_value(merged, "ide.enabled") is not True:
        advice = f"{IDE_MODE_IS_OFF}: set ide.enabled to true in {user}, or enter /ide enable in it and start it again"
        if last_value(merged, "ide.hasSeenNudge") is not True:
            advice += ". To its question whether to connect an editor answer No: Yes looks for an extension to install"
        yield advice
    mode = last_value(merged, cli.mode_key, cli.mode)
    if mode in AUTOMATIC_MODES:
        yield (
            f"it starts in the mode {mode}, in which it shows no diffs: Shift+Tab changes it, "
            f"`--approval-mode default` or {cli.mode_key} = default in {user} starts it in the one that asks"
        )
