"""Further folders of a session, in its AgentSettings: those that the user does not allow are left out. Pure."""

from collections.abc import Sequence

from isthmus.development_tool import ADDITIONAL_DIRECTORIES
from isthmus.encoding.codec import JsonObject
from isthmus.text.visible import visible_line


def further_folders(settings: JsonObject) -> tuple[str, ...]:
    """Return the further folders in AgentSettings, as absolute paths."""
    return tuple(settings.get(ADDITIONAL_DIRECTORIES, ()))


def without_folders(settings: JsonObject, refused: Sequence[str]) -> tuple[JsonObject, str]:
    """Return AgentSettings without the folders that the user refused, and the sentences by which the user is told."""
    kept = [folder for folder in further_folders(settings) if folder not in refused]
    names = ", ".join(map(visible_line, refused))
    told = f"The agent does not work in {names}: you did not allow it. Load the session to be asked again.\n\n"
    return {**settings, ADDITIONAL_DIRECTORIES: kept}, told


def of_this_request(settings: JsonObject) -> JsonObject:
    """Return AgentSettings by which the folders of earlier prompts do not count any more."""
    return {ADDITIONAL_DIRECTORIES: [], **settings}
