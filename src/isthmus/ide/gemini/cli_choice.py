"""Predicts the editor that Gemini CLI 0.61 or Qwen Code 0.24 chooses. No I/O: callers read files and try ports."""

import os
from collections.abc import Sequence

from isthmus.ide.cli_choice import START_ADVICE, Announcement, CliChoice, Here, go_to, nobody_listens, nothing_here
from isthmus.ide.discovery_file import mismatch, port_number
from isthmus.ide.gemini.discovery import GEMINI_CLI, QWEN_CODE
from isthmus.ide.gemini.finding import PORT_VARIABLE, WORKSPACE_VARIABLE

QWEN_PORT_VARIABLE = "QWEN_CODE_IDE_SERVER_PORT"


def gemini_choice(files: Sequence[Announcement], here: Here) -> CliChoice:
    """Return the choice of Gemini CLI among its usable files."""
    cli = GEMINI_CLI
    named = port_number(here.environment.get(PORT_VARIABLE))
    editor_pid = _pid(here.environment.get("GEMINI_CLI_IDE_PID")) or here.editor_pid
    old = next((file for file in files if file.number is not None and file.number == editor_pid), None)
    ranked = sorted(
        (file for file in files if file.number is None),
        key=lambda file: (file.pid != editor_pid, not here.is_alive(file), -(file.pid or 0)),
    )
    fitting = [old] if old is not None and here.fits(old) else [file for file in ranked if here.fits(file)]
    if old is not None and not here.fits(old):
        return nothing_here(cli, [old], here)
    if not fitting:
        return nothing_here(cli, ranked, here) if ranked else _gemini_by_variables(here, named)
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
        return CliChoice(cli, True, file.path, file.port, file.editor, _reason(file, fitting, named, editor_pid, here))
    if named is not None and named in here.open_ports:
        reason = f"nobody listens on port {file.port}, which its file names; it tries {PORT_VARIABLE} then"
        return CliChoice(cli, True, PORT_VARIABLE, named, "IDE", reason)
    return nobody_listens(cli, file, "it tries no other file")


def _gemini_by_variables(here: Here, named: int | None) -> CliChoice:
    cli = GEMINI_CLI
    if named is None:
        return CliChoice(
            cli, False, None, None, "", "there is no discovery file, and no variable names a port", START_ADVICE
        )
    folders = tuple(folder for folder in here.environment.get(WORKSPACE_VARIABLE, "").split(os.pathsep) if folder)
    if not folders:
        reason = f"there is no discovery file, and {PORT_VARIABLE} is set without {WORKSPACE_VARIABLE}"
        return CliChoice(cli, False, PORT_VARIABLE, named, "", reason, START_ADVICE)
    if problem := mismatch(here.folder, folders):
        return CliChoice(cli, False, PORT_VARIABLE, named, "", f"{WORKSPACE_VARIABLE}: {problem}", go_to(folders))
    if reason := _unknown_terminal(here, cli):
        return CliChoice(
            cli, False, PORT_VARIABLE, named, "", f"there is no discovery file, and {reason}", START_ADVICE
        )
    if named not in here.open_ports:
        return CliChoice(
            cli, False, PORT_VARIABLE, named, "", f"nobody listens on port {named} of {PORT_VARIABLE}", START_ADVICE
        )
    return CliChoice(cli, True, PORT_VARIABLE, named, "IDE", "the variables of this terminal name it; no file does")


def qwen_choice(files: Sequence[Announcement], here: Here) -> CliChoice:
    """Return the choice of Qwen Code among its usable files."""
    cli = QWEN_CODE
    named = port_number(here.environment.get(QWEN_PORT_VARIABLE))
    locks = [file for file in files if file.number is None]
    numbers = (here.editor_pid, named)
    old = [file for number in numbers for file in files if file.number is not None and file.number == number]
    # Qwen Code removes locks whose process is gone before it reads the others, except the one of the variable.
    living = [file for file in locks if file.pid is None or here.is_alive(file)]
    newest = sorted(living, key=lambda file: -file.modified_at)
    by_variable = [file for file in locks if file.port == named]
    fitting = [file for file in dict.fromkeys([*by_variable, *old, *newest]) if here.fits(file)]
    if not fitting:
        if newest:
            return nothing_here(cli, newest, here)
        if named is not None and named in here.open_ports:
            reason = f"{QWEN_PORT_VARIABLE} names it, but without a lock file for it Qwen Code has no token to show"
            return CliChoice(cli, False, QWEN_PORT_VARIABLE, named, "IDE", reason, START_ADVICE)
        return CliChoice(cli, False, None, None, "", "there is no lock file of an editor that runs", START_ADVICE)
    first = fitting[0]
    if not first.has_identity and here.environment.get("TERM_PROGRAM") != "vscode":
        reason = "its file does not name the editor, and this is not a terminal of VS Code"
        return CliChoice(
            cli, False, first.path, first.port, first.editor, reason, "the file needs ideInfo with both names"
        )
    for file in [first, *(file for file in newest if file is not first and here.fits(file))]:
        if file.port in here.open_ports:
            reason = "the only one that has this folder open" if len(fitting) == 1 else "the newest that has it open"
            reason = f"{QWEN_PORT_VARIABLE} names it" if file.port == named else reason
            return CliChoice(cli, True, file.path, file.port, file.editor, reason)
    return nobody_listens(cli, first, "nor on those of the other fitting files")


def _reason(
    file: Announcement, fitting: Sequence[Announcement], named: int | None, editor_pid: int | None, here: Here
) -> str:
    if len(fitting) == 1:
        return "the only one that has this folder open"
    if file.port == named:
        return f"{PORT_VARIABLE} names it, of {len(fitting)} that have this folder open"
    if file.pid == editor_pid:
        return f"this terminal runs in it, of {len(fitting)} that have this folder open"
    living = "living " if here.is_alive(file) else ""
    return f"the {living}one with the highest process id, of {len(fitting)} that have this folder open"


def _unknown_terminal(here: Here, cli: str) -> str:
    """Return the reason why the CLI does not recognise its terminal as one of an IDE; empty if it does."""
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


def _pid(text: str | None) -> int | None:
    """Return the number in an environment variable; None if it contains none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None
