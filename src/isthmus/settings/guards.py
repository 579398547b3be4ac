"""Guards of Gemini CLI that Isthmus does not have, found in the settings so that nobody counts on them in vain.

They forbid, ask or hide something. Where there is one, the approval mode ``yolo`` is refused. Also the names of the
keys that are not used at all. Blocks: policy files are looked into.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.files.atomic import read_regular
from isthmus.settings.keys import KEYS, OLD_NAMES
from isthmus.settings.sources import OF_OWNER, Owner, SettingsSource, Sources, system_folder

MAXIMUM_POLICY_BYTES = 1024 * 1024
"""Maximum size of a policy file; a larger one counts as one that forbids something."""
MAXIMUM_POLICY_FILES = 200
"""Maximum number of policy files that are looked into in one folder."""
MAXIMUM_NAMED = 40
"""Maximum number of keys that are named as not used."""
MAXIMUM_NAME_CHARACTERS = 100
"""Longer names of keys are cut."""

GUARDS: Mapping[str, str] = {
    "hooks": "hooks run before or after tools and prompts, and may refuse them",
    "policyPaths": "policy files deny tools, or ask about them",
    "adminPolicyPaths": "policy files deny tools, or ask about them",
    "security.enableConseca": "a model judges each tool call",
    "security.toolSandboxing": "each tool runs in a sandbox of its own",
    "security.environmentVariableRedaction.enabled": "variables that look like secrets are hidden from commands",
    "security.environmentVariableRedaction.blocked": "named variables are hidden from commands",
    "security.auth.enforcedType": "one way to log in is required",
    "admin.mcp.enabled": "`false` forbids MCP servers",
    "admin.mcp.config": "only the MCP servers of the administrator are allowed",
    "context.fileFiltering.customIgnoreFilePaths": "more ignore files hide files from the tools",
}
"""Keys that forbid, ask or hide something which is not built, each with what it does in Gemini CLI."""


def unbuilt_guards(files: Sources, home: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the guards that the files set up, each with its file. A project's count in a trusted folder alone.

    Gemini CLI reads nothing of an untrusted folder either, and policy files of projects are not read by it at all.
    """
    found: list[str] = []
    for file in files.files:
        if file.owner is Owner.PROJECT and not files.is_trusted:
            continue
        found += [f"{key} in {files.where(file)}" for key in GUARDS if _guards(file, key)]
    for folder in (system_folder() / "policies", home / ".gemini" / "policies"):
        forbidding = [path for path in _policy_files(folder) if _forbids(path)]
        found += [f"policy {path}" if files.names_files else f"policy files in {OF_OWNER}" for path in forbidding]
    return tuple(dict.fromkeys(found))


def unused_keys(files: Sources) -> tuple[str, ...]:
    """Return the names of all keys in the files that are neither used nor guards; many are counted."""
    names = dict.fromkeys(name for file in files.files for name in _names(file.values, ""))
    unused = [name[:MAXIMUM_NAME_CHARACTERS] for name in names if not _is_known(name)]
    more = len(unused) - MAXIMUM_NAMED
    return tuple(unused) if more <= 0 else (*unused[:MAXIMUM_NAMED], f"and {more} more")


def _guards(file: SettingsSource, key: str) -> bool:
    """Return whether a key is set so that it guards something."""
    value = file.get(key)
    if key == "hooks":
        is_off = as_object(file.values.get("hooksConfig")).get("enabled") is False
        return not is_off and any(as_list(hooks) for hooks in as_object(value).values())
    if key == "admin.mcp.enabled":
        return value is False
    return bool(value)


def _policy_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".toml")[:MAXIMUM_POLICY_FILES]
    except OSError:
        return []


def _forbids(path: Path) -> bool:
    """Return whether a policy file denies or asks anything; one that cannot be read may."""
    import tomllib

    try:
        policy = tomllib.loads(read_regular(path, MAXIMUM_POLICY_BYTES).decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        return True
    rules = [as_object(rule) for rule in as_list(policy.get("rule"))]
    return bool(policy.get("safety_checker")) or any(rule.get("decision") != "allow" for rule in rules)


def _names(values: Mapping[str, object], prefix: str) -> Iterator[str]:
    """Yield the names of all values that are not objects, and of the objects that are known as one key."""
    waiting = [(prefix, values)]
    while waiting:
        before, fields = waiting.pop()
        for name, value in fields.items():
            whole = f"{before}{name}"
            if isinstance(value, Mapping) and value and not _is_known(whole):
                waiting.append((f"{whole}.", cast("Mapping[str, object]", value)))
            else:
                yield whole


def _is_known(name: str) -> bool:
    return (
        name in KEYS
        or name in GUARDS
        or name in OLD_NAMES.values()
        or name.startswith("hooksConfig")
        or name == "$schema"
    )
