"""Finds keys of the settings that are probably misspelt, so that no setting is lost without a word. Pure.

Under ``isthmus.`` each unknown key is a mistake. Elsewhere the files are Gemini CLI's, which has many keys that are not
used here; there a key is a mistake if it differs from a used one by one or two characters.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from isthmus.settings.guards import is_known, names_in
from isthmus.settings.keys import KEYS
from isthmus.settings.settings_file import Owner, SettingsSource
from isthmus.settings.sources import Sources
from isthmus.text.visible import visible_line

CHARACTERS = 2
"""Maximum number of characters by which a misspelt key of Gemini CLI differs from the one that is meant."""
MAXIMUM_LINES = 10
"""Maximum number of keys that are named."""
MAXIMUM_NAME_CHARACTERS = 100
"""Maximum length of a name that is compared; longer ones resemble nothing."""
_SECTIONS = frozenset(name.rpartition(".")[0] for name in KEYS)


def misspelt_keys(files: Sources) -> tuple[str, ...]:
    """Return a line for each key that is probably misspelt; those of a project's file only if its folder is trusted."""
    lines: list[str] = []
    for file in files.files:
        if file.owner is not Owner.PROJECT or files.is_trusted:
            lines += _lines(file)
    more = len(lines) - MAXIMUM_LINES
    return tuple(lines) if more <= 0 else (*lines[:MAXIMUM_LINES], f"and {more} more keys that do not exist")


def _lines(file: SettingsSource) -> Iterable[str]:
    for name in names_in(file.values):
        if is_known(name) or name in _SECTIONS:
            continue
        meant = _meant(name)
        if meant:
            likely = " or ".join(meant)
            yield f"{file.path}: {visible_line(name)} is not a key of the settings. Did you mean {likely}?"
        elif name.startswith("isthmus."):
            shown = visible_line(name[:MAXIMUM_NAME_CHARACTERS])
            yield f"{file.path}: {shown} is not a key of Isthmus and has no effect. docs/reference/settings.md has all."


def _meant(name: str) -> Sequence[str]:
    """Return the used keys that a name resembles, the most similar first."""
    if len(name) > MAXIMUM_NAME_CHARACTERS:
        return ()
    if name.startswith("isthmus."):
        by_lower = {key.lower(): key for key in KEYS if key.startswith("isthmus.")}
        return [by_lower[key] for key in get_close_matches(name.lower(), list(by_lower), 2, 0.8)]
    near = {key: found for key in KEYS if (found := edit_distance(name, key, CHARACTERS)) <= CHARACTERS}
    return sorted(near, key=near.__getitem__)[:2]


def edit_distance(first: str, second: str, limit: int) -> int:
    """Return how many characters must be added, removed or replaced to make one text the other: Levenshtein's distance.

    Beyond ``limit`` it is ``limit + 1``.
    """
    if abs(len(first) - len(second)) > limit:
        return limit + 1
    above = list(range(len(second) + 1))
    for row, one in enumerate(first, 1):
        line = [row]
        for column, other in enumerate(second, 1):
            line.append(min(above[column] + 1, line[-1] + 1, above[column - 1] + (one != other)))
        if min(line) > limit:
            return limit + 1
        above = line
    return min(above[-1], limit + 1)
