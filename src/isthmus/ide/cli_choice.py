"""Predicts the editor that an agent CLI connects to, from its discovery files and the place where it starts.

No I/O. The rules of each CLI are in the folder of its protocol; they were read in the CLI's code and observed.
"""

from collections.abc import Mapping, Sequence

from isthmus.ide.discovery_file import mismatch
from isthmus.record import record

START_ADVICE = "start `isthmus companion` here, or run the CLI by `isthmus companion exec -- COMMAND`"


@record
class Announcement:
    """Contents of one discovery file. ``cli`` is the agent CLI that reads it, by the name that users know.

    ``problem`` is the reason why no CLI can use the file; the other fields are empty then. ``pid`` is the process in
    the file: the editor, or its companion. ``number`` is the process id or port in the name of a file of an old form;
    None for the current form. ``has_identity`` is true if the file names the editor. ``modified_at`` is Unix time in
    seconds.
    """

    cli: str
    path: str
    problem: str | None = None
    port: int = 0
    pid: int | None = None
    folders: tuple[str, ...] = ()
    editor: str = ""
    has_identity: bool = True
    number: int | None = None
    modified_at: float = 0.0


@record
class Here:
    """Place in which the CLI would be started. ``folder`` is resolved.

    ``editor_pid`` is the process that Gemini CLI and Qwen Code, by the process tree, consider their editor. ``living``
    contains those process ids from the files whose process exists, ``open_ports`` those ports from files and variables
    on which a process listens.
    """

    folder: str
    environment: Mapping[str, str]
    editor_pid: int | None = None
    in_container: bool = False
    living: frozenset[int] = frozenset()
    open_ports: frozenset[int] = frozenset()

    def fits(self, announcement: Announcement) -> bool:
        """Return whether the folder is in one of the editor's folders."""
        return mismatch(self.folder, announcement.folders) is None

    def is_alive(self, announcement: Announcement) -> bool:
        """Return whether the process that the file names exists."""
        return announcement.pid in self.living


@record
class CliChoice:
    """Prediction for one CLI. ``source`` is the file or variable that it uses; None if it finds none.

    ``connects`` is true if a server answers at the port. If not, ``advice`` tells the user what to do; otherwise it is
    empty. ``remarks`` are restrictions by the CLI's own settings that apply even if it connects.
    """

    cli: str
    connects: bool
    source: str | None
    port: int | None
    editor: str
    reason: str
    advice: str = ""
    remarks: tuple[str, ...] = ()


def nothing_here(cli: str, files: Sequence[Announcement], here: Here) -> CliChoice:
    """Return the choice of a CLI if none of its ``files`` is of an editor that has the folder open."""
    answering = [file for file in files if file.port in here.open_ports]
    folders = tuple(dict.fromkeys(folder for file in answering for folder in file.folders))
    reason = f"no editor that it finds has {here.folder} open"
    return CliChoice(
        cli, False, None, None, "", reason, f"{go_to(folders)}; or {START_ADVICE}" if folders else START_ADVICE
    )


def go_to(folders: tuple[str, ...]) -> str:
    """Return the advice to start the CLI in one of these folders."""
    return f"start the CLI in {' or '.join(folders[:5])}"


def nobody_listens(cli: str, file: Announcement, then: str) -> CliChoice:
    """Return the choice of a CLI if no server listens on the port of its best file; ``then`` ends the reason."""
    reason = f"nobody listens on port {file.port}, which the file that fits best names; {then}"
    return CliChoice(cli, False, file.path, file.port, file.editor, reason, f"remove {file.path}; then {START_ADVICE}")
