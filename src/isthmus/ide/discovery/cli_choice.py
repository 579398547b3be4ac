"""Predicts the editor that an agent CLI started here takes, and why: each CLI's rules, as read in its code and seen.

Gemini CLI 0.61, Qwen Code 0.24, Claude Code 2.1, and our own agent, which takes the best of all (:mod:`connecting`).
Decisions without I/O: files are read and ports tried before.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isthmus.ide.claude.finding import PORT_VARIABLE
from isthmus.ide.discovery.announcement import Announcement, Protocol
from isthmus.ide.discovery.connecting import Candidates
from isthmus.ide.discovery_file import mismatch, port_number

GEMINI_PORT = "GEMINI_CLI_IDE_SERVER_PORT"
GEMINI_FOLDERS = "GEMINI_CLI_IDE_WORKSPACE_PATH"
QWEN_PORT = "QWEN_CODE_IDE_SERVER_PORT"
_START = "start `isthmus companion` here, or run the CLI by `isthmus companion exec -- COMMAND`"


@dataclass(frozen=True, slots=True)
class Here:
    """Place in which the CLI would be started. ``folder`` is resolved.

    ``editor_pid`` is the process that Gemini CLI and Qwen Code take for their editor, from the process tree. ``living``
    are the process ids in files whose process exists, ``open_ports`` the ports in files and variables on which a
    process listens.
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
        """Return whether the process that a file names exists."""
        return announcement.pid in self.living


@dataclass(frozen=True, slots=True)
class CliChoice:
    """Prediction for one CLI. ``source`` is the file, or the variable, that it uses; None if it finds nothing.

    ``connects``: a server answers there. ``advice`` is what to do if not, or "". ``remarks`` are restrictions by the
    CLI's own settings that apply even if it connects.
    """

    cli: str
    connects: bool
    source: str | None
    port: int | None
    editor: str
    reason: str
    advice: str = ""
    remarks: tuple[str, ...] = ()


def choices(files: Sequence[Announcement], here: Here) -> tuple[CliChoice, ...]:
    """Return the prediction for each known CLI but our own."""
    usable = [file for file in files if file.problem is None]
    return (
        _gemini([file for file in usable if file.protocol is Protocol.GEMINI], here),
        _qwen([file for file in usable if file.protocol is Protocol.QWEN], here),
        _claude([file for file in usable if file.protocol is Protocol.CLAUDE], here),
    )


def _gemini(files: Sequence[Announcement], here: Here) -> CliChoice:
    cli = Protocol.GEMINI.value
    named = port_number(here.environment.get(GEMINI_PORT))
    editor_pid = port_or_pid(here.environment.get("GEMINI_CLI_IDE_PID")) or here.editor_pid
    old = next((file for file in files if file.number is not None and file.number == editor_pid), None)
    ranked = sorted(
        (file for file in files if file.number is None),
        key=lambda file: (file.pid != editor_pid, not here.is_alive(file), -(file.pid or 0)),
    )
    fitting = [old] if old is not None and here.fits(old) else [file for file in ranked if here.fits(file)]
    if old is not None and not here.fits(old):
        return _elsewhere(cli, [old], here)
    if not fitting:
        return _elsewhere(cli, ranked, here) if ranked else _gemini_by_variables(here, named)
    file = next((file for file in fitting if file.port == named), fitting[0])
    if not file.has_identity and (reason := _unknown_terminal(here, cli)):
        return CliChoice(
            cli, False, file.path, file.port, file.editor, reason, "the file needs ideInfo with both names"
        )
    if here.in_container and not _is_editor_in_container(here):
        advice = (
            "when the editor is in this container too, set REMOTE_CONTAINERS=true for the CLI, or start it by "
            "`isthmus companion exec -- gemini`"
        )
        reason = "in a container it looks for its editor on the host, at host.docker.internal"
        return CliChoice(cli, False, file.path, file.port, file.editor, reason, advice)
    if file.port in here.open_ports:
        return CliChoice(cli, True, file.path, file.port, file.editor, _why(file, fitting, named, editor_pid, here))
    if named is not None and named in here.open_ports:
        reason = f"nobody listens on port {file.port}, which its file names; it tries {GEMINI_PORT} then"
        return CliChoice(cli, True, GEMINI_PORT, named, "IDE", reason)
    return _silent(cli, file, "it tries no other file")


def _gemini_by_variables(here: Here, named: int | None) -> CliChoice:
    cli = Protocol.GEMINI.value
    if named is None:
        return CliChoice(cli, False, None, None, "", "there is no discovery file, and no variable names a port", _START)
    folders = tuple(folder for folder in here.environment.get(GEMINI_FOLDERS, "").split(os.pathsep) if folder)
    if not folders:
        reason = f"there is no discovery file, and {GEMINI_PORT} stands without {GEMINI_FOLDERS}"
        return CliChoice(cli, False, GEMINI_PORT, named, "", reason, _START)
    if problem := mismatch(here.folder, folders):
        return CliChoice(cli, False, GEMINI_PORT, named, "", f"{GEMINI_FOLDERS}: {problem}", _go_to(folders))
    if reason := _unknown_terminal(here, cli):
        return CliChoice(cli, False, GEMINI_PORT, named, "", f"there is no discovery file, and {reason}", _START)
    if named not in here.open_ports:
        return CliChoice(cli, False, GEMINI_PORT, named, "", f"nobody listens on port {named} of {GEMINI_PORT}", _START)
    return CliChoice(cli, True, GEMINI_PORT, named, "IDE", "the variables of this terminal name it; no file does")


def _qwen(files: Sequence[Announcement], here: Here) -> CliChoice:
    cli = Protocol.QWEN.value
    named = port_number(here.environment.get(QWEN_PORT))
    locks = [file for file in files if file.number is None]
    numbers = (here.editor_pid, named)
    old = [file for number in numbers for file in files if file.number is not None and file.number == number]
    # One whose process is gone is removed before the others are looked at, except the one of the variable.
    living = [file for file in locks if file.pid is None or here.is_alive(file)]
    newest = sorted(living, key=lambda file: -file.modified_at)
    by_variable = [file for file in locks if file.port == named]
    fitting = [file for file in dict.fromkeys([*by_variable, *old, *newest]) if here.fits(file)]
    if not fitting:
        if newest:
            return _elsewhere(cli, newest, here)
        if named is not None and named in here.open_ports:
            reason = f"{QWEN_PORT} names it, but without a lock file for it Qwen Code has no token to show"
            return CliChoice(cli, False, QWEN_PORT, named, "IDE", reason, _START)
        return CliChoice(cli, False, None, None, "", "there is no lock file of an editor that runs", _START)
    first = fitting[0]
    if not first.has_identity and here.environment.get("TERM_PROGRAM") != "vscode":
        reason = "its file does not say what editor it is, and this is not a terminal of VS Code"
        return CliChoice(
            cli, False, first.path, first.port, first.editor, reason, "the file needs ideInfo with both names"
        )
    for file in [first, *(file for file in newest if file is not first and here.fits(file))]:
        if file.port in here.open_ports:
            why = "the only one that has this folder open" if len(fitting) == 1 else "the newest that has it open"
            why = f"{QWEN_PORT} names it" if file.port == named else why
            return CliChoice(cli, True, file.path, file.port, file.editor, why)
    return _silent(cli, first, "nor on those of the other fitting files")


def _claude(files: Sequence[Announcement], here: Here) -> CliChoice:
    cli = Protocol.CLAUDE.value
    value = here.environment.get(PORT_VARIABLE)
    named = port_number(value)
    # It removes locks whose process it does not see before it looks at the others.
    living = [file for file in files if here.is_alive(file)]
    if named is not None:
        lock = next((file for file in living if file.port == named), None)
        if named not in here.open_ports:
            reason = f"nobody listens on port {named}, which {PORT_VARIABLE} names"
            return CliChoice(cli, False, PORT_VARIABLE, named, "", reason, f"unset {PORT_VARIABLE}, or {_START}")
        if lock is None:
            reason = f"{PORT_VARIABLE} names port {named}; without a lock file it has no token to show there"
            return CliChoice(cli, True, PORT_VARIABLE, named, "IDE", reason)
        return CliChoice(
            cli, True, lock.path, named, lock.editor, f"{PORT_VARIABLE} names it, whatever its folders are"
        )
    fitting = [file for file in living if here.fits(file)]
    if len(fitting) == 1:
        file = fitting[0]
        if file.port not in here.open_ports:
            return _silent(cli, file, "it tries no other file")
        reason = "the only one that has this folder open; taken with `claude --ide`, or by /ide"
        return CliChoice(cli, True, file.path, file.port, file.editor, reason)
    if fitting:
        listed = ", ".join(f"{file.editor} on port {file.port}" for file in fitting)
        reason = f"{len(fitting)} lock files fit ({listed}), and with `--ide` it takes none when more than one does"
        dead = [file for file in fitting if file.port not in here.open_ports]
        advice = f"remove {' and '.join(file.path for file in dead)}, where nobody listens; or " if dead else ""
        return CliChoice(cli, False, None, None, "", reason, f"{advice}choose one by /ide, or set {PORT_VARIABLE}")
    if living:
        return _elsewhere(cli, living, here)
    return CliChoice(cli, False, None, None, "", "there is no lock file of an editor that runs", _START)


def isthmus_choice(candidates: Candidates, files: Sequence[Announcement], here: Here) -> CliChoice:
    """Return the prediction for our own agent: of the candidates, best first, it takes the first one that answers."""
    cli = "Isthmus"
    ranked = [ide for ides in candidates.by_protocol.values() for ide in ides]
    for ide in ranked:
        if ide.port in here.open_ports:
            reason = "the only one for this folder" if len(ranked) == 1 else "the best one for this folder and terminal"
            return CliChoice(cli, True, ide.source, ide.port, ide.display_name, reason)
    if not ranked:
        return _elsewhere(cli, [file for file in files if file.problem is None], here)
    return CliChoice(cli, False, None, None, "", "nobody listens on the ports that the files name", _START)


def port_or_pid(text: str | None) -> int | None:
    """Return the number in an environment variable; None if it does not hold one."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None


def _why(
    file: Announcement, fitting: Sequence[Announcement], named: int | None, editor_pid: int | None, here: Here
) -> str:
    if len(fitting) == 1:
        return "the only one that has this folder open"
    if file.port == named:
        return f"{GEMINI_PORT} names it, of {len(fitting)} that have this folder open"
    if file.pid == editor_pid:
        return f"this terminal runs in it, of {len(fitting)} that have this folder open"
    living = "living " if here.is_alive(file) else ""
    return f"the {living}one with the highest process id, of {len(fitting)} that have this folder open"


def _unknown_terminal(here: Here, cli: str) -> str:
    """Return why the terminal does not show the CLI that it is in an IDE; empty if it does."""
    environment = here.environment
    if (
        environment.get("TERM_PROGRAM") in ("vscode", "sublime", "Zed")
        or environment.get("ZED_SESSION_ID")
        or environment.get("XCODE_VERSION_ACTUAL")
        or "jetbrains" in environment.get("TERMINAL_EMULATOR", "").lower()
    ):
        return ""
    return f"this terminal is of no editor that {cli} knows (TERM_PROGRAM)"


def _is_editor_in_container(here: Here) -> bool:
    names = ("SSH_CONNECTION", "VSCODE_REMOTE_CONTAINERS_SESSION", "REMOTE_CONTAINERS")
    return any(here.environment.get(name) for name in names)


def _elsewhere(cli: str, files: Sequence[Announcement], here: Here) -> CliChoice:
    answering = [file for file in files if file.port in here.open_ports]
    folders = tuple(dict.fromkeys(folder for file in answering for folder in file.folders))
    reason = f"no editor that it finds has {here.folder} open"
    return CliChoice(cli, False, None, None, "", reason, f"{_go_to(folders)}; or {_START}" if folders else _START)


def _go_to(folders: tuple[str, ...]) -> str:
    return f"start the CLI in {' or '.join(folders[:5])}"


def _silent(cli: str, file: Announcement, then: str) -> CliChoice:
    reason = f"nobody listens on port {file.port}, which the file that fits best names; {then}"
    return CliChoice(cli, False, file.path, file.port, file.editor, reason, f"remove {file.path}; then {_START}")
