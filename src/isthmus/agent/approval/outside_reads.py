"""Reads of files outside the workspace: a question for each, or for their folder in the session. Pure."""

from collections.abc import Iterable
from pathlib import Path

from isthmus.agent.approval.grants import CANCEL, PROCEED_ONCE
from isthmus.agent.session.open_call import OpenCall
from isthmus.development_tool import ConfirmationOption, GenericDetails, ToolCall

PROCEED_ALWAYS_FOLDER = "proceed_always_folder"
_BEGINNING = "Read a file outside the workspace: "


def details_of(path: Path) -> GenericDetails:
    """Return the question about a file, by its path without symbolic links."""
    return GenericDetails(f"{_BEGINNING}{path}")


def options_of(path: Path) -> tuple[ConfirmationOption, ...]:
    """Return the answers to the question about a file."""
    return (
        ConfirmationOption(PROCEED_ONCE, "Allow once"),
        ConfirmationOption(
            PROCEED_ALWAYS_FOLDER,
            "Always allow this folder",
            f"For the rest of this session, files in {path.parent} are read without asking",
        ),
        ConfirmationOption(CANCEL, "Reject", "Do not read it and tell the agent"),
    )


def allowed_reads(answered: Iterable[tuple[ToolCall, str]], item: OpenCall) -> tuple[Path, ...]:
    """Return the folders whose files may be read after the answers of a session, and the file of an allowed call."""
    allowed = [path.parent for call, option in answered if option == PROCEED_ALWAYS_FOLDER and (path := _path(call))]
    confirmation = item.confirmation
    if item.call is not None and confirmation is not None and confirmation.selected_option_id == PROCEED_ONCE:
        allowed += [path] if (path := _path(item.call)) is not None else []
    return tuple(dict.fromkeys(allowed))


def _path(call: ToolCall) -> Path | None:
    """Return the file that a question named; None for another question."""
    request = call.confirmation_request
    details = request.details if request is not None else None
    if not isinstance(details, GenericDetails) or not details.description.startswith(_BEGINNING):
        return None
    return Path(details.description.removeprefix(_BEGINNING))
