"""Folders of installed extensions, as Gemini CLI leaves them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def install_extension(
    home: Path, name: str, manifest: Mapping[str, Any] | None = None, *, source_type: str = "local"
) -> Path:
    """Write an extension of the user with the home folder ``home``; return its folder."""
    folder = home / ".gemini" / "extensions" / name
    folder.mkdir(parents=True, exist_ok=True)
    values = {"name": name, "version": "1.0.0", **(manifest or {})}
    (folder / "gemini-extension.json").write_text(json.dumps(values), "utf-8")
    installation = {"source": f"https://github.com/theirs/{name}", "type": source_type}
    (folder / ".gemini-extension-install.json").write_text(json.dumps(installation), "utf-8")
    return folder


def link_extension(home: Path, name: str, target: Path) -> None:
    """Write what ``gemini extensions link`` leaves for an extension whose files are in ``target``."""
    folder = home / ".gemini" / "extensions" / name
    folder.mkdir(parents=True)
    installation = {"source": str(target), "type": "link"}
    (folder / ".gemini-extension-install.json").write_text(json.dumps(installation), "utf-8")


def enable_extension(home: Path, name: str, rules: Sequence[str]) -> None:
    """Write the rules of where an extension is switched on and off."""
    file = home / ".gemini" / "extensions" / "extension-enablement.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: {"overrides": list(rules)}}), "utf-8")
