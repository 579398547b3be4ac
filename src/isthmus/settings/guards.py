"""Finds guards of Gemini CLI that Isthmus does not implement, so that no user relies on them in vain.

A guard forbids, asks or hides something. If the settings have one, the approval mode ``yolo`` is refused. Finds also
the keys that are not used at all. Pure.
"""

from collections.abc import Iterator, Mapping
from typing import cast

from isthmus.settings.keys import FORMER_NAMES, KEYS
from isthmus.settings.settings_file import Owner, SettingsSource
from isthmus.settings.sources import Sources

MAXIMUM_NAMED = 40
"""Maximum number of unused keys that are listed."""
MAXIMUM_NAME_CHARACTERS = 100
"""Maximum length of the name of an unused key; longer ones are cut."""

GUARDS: Mapping[str, str] = {
    "security.enableConseca": "a model judges each tool call",
    "security.toolSandboxing": "each tool runs in a sandbox of its own",
    "security.environmentVariableRedaction.enabled": "variables that look like secrets are hidden from commands",
    "security.environmentVariableRedaction.blocked": "named variables are hidden from commands",
    "security.auth.enforcedType": "one way to log in is required",
    "context.fileFiltering.customIgnoreFilePaths": "more ignore files hide files from the tools",
}
"""Keys of guards that Isthmus does not implement, each with its effect in Gemini CLI."""


def missing_guards(files: Sources) -> tuple[str, ...]:
    """Return the guards in the files, each with its file; those of a project only if its folder is trusted.

    Gemini CLI, too, reads nothing in an untrusted folder.
    """
    found: list[str] = []
    for file in files.files:
        if file.owner is Owner.PROJECT and not files.is_trusted:
            continue
        found += [f"{key} in {files.where(file)}" for key in GUARDS if _guards(file, key)]
    return tuple(dict.fromkeys(found))


def unused_keys(files: Sources) -> tuple[str, ...]:
    """Return the keys in the files that are neither used nor guards; of many only the first ones and a count."""
    names = dict.fromkeys(name for file in files.files for name in names_in(file.values))
    unused = [name[:MAXIMUM_NAME_CHARACTERS] for name in names if not is_known(name)]
    more = len(unused) - MAXIMUM_NAMED
    return tuple(unused) if more <= 0 else (*unused[:MAXIMUM_NAMED], f"and {more} more")


def _guards(file: SettingsSource, key: str) -> bool:
    """Return whether a key has a value with which it guards something."""
    value = file.get(key)
    return bool(value)


def names_in(values: Mapping[str, object]) -> Iterator[str]:
    """Yield the full names of all values; those inside an object only if the object itself is not a known key."""
    waiting = [("", values)]
    while waiting:
        before, fields = waiting.pop()
        for name, value in fields.items():
            whole = f"{before}{name}"
            if isinstance(value, Mapping) and value and not is_known(whole):
                waiting.append((f"{whole}.", cast("Mapping[str, object]", value)))
            else:
                yield whole


def is_known(name: str) -> bool:
    """Return whether the name of a key is used, is that of a guard, or means nothing on purpose."""
    return name in KEYS or name in GUARDS or name in FORMER_NAMES.values() or name == "$schema"
