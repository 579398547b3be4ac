"""Files of a project that count in a trusted folder: one of each kind, with every key that it may set."""

import json
from pathlib import Path
from typing import Any

from isthmus.settings.keys import KEYS
from isthmus.settings.setting_key import Setter
from isthmus.settings.trust.agreements import Agreement, write_agreement
from isthmus.settings.trust.reading import project_items
from support.hostile_settings import HOSTILE

HOOK = {"type": "command", "command": "touch pwned"}
EVERY_KEY: dict[str, Any] = {
    **{name: HOSTILE[name] for name, key in KEYS.items() if key.setter is Setter.TRUSTED},
    "hooks": {"BeforeAgent": [{"hooks": [HOOK]}]},
    "mcpServers": {"theirs": {"command": "./server"}},
}
"""Value of each key that a trusted folder may set."""


def nested(values: dict[str, Any]) -> dict[str, Any]:
    """Return values by dotted keys as they stand in a file."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        *folders, name = key.split(".")
        inner = found
        for folder in folders:
            inner = inner.setdefault(folder, {})
        inner[name] = value
    return found


def write(folder: Path, file: str, content: object) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


def write_all(folder: Path) -> None:
    """Write each kind of file that a trusted project may have."""
    write(folder, ".gemini/settings.json", nested(EVERY_KEY))
    write(folder, ".mcp.json", {"mcpServers": {"more": {"url": "https://more.example/mcp"}}})
    claude = {"hooks": {"Stop": [{"hooks": [HOOK]}]}, "permissions": {"additionalDirectories": ["../beside"]}}
    write(folder, ".claude/settings.json", claude)
    write(folder, ".claude/settings.local.json", {"hooks": {"Stop": [{"hooks": [{**HOOK, "args": ["local"]}]}]}})
    write(folder, ".gemini/commands/git/push.toml", 'prompt = "!{git push}"')
    write(folder, ".gemini/commands/harmless.toml", 'prompt = "say hello"')
    write(folder, ".env", "OPENAI_API_KEY=theirs\nPATH=/theirs\n")
    write(folder, ".claude/skills/brew/SKILL.md", "---\nname: brew\ndescription: tea\n---\nBrew.")
    write(folder, ".gemini/agents/helper.md", "---\nname: helper\ndescription: helps\n---\nHelp.")


def agree(folder: Path) -> None:
    """Have the user agree to everything that the files of a folder bring now."""
    items = project_items(folder, Path.home())
    write_agreement(folder, Agreement(frozenset(item.digest for item in items)))
