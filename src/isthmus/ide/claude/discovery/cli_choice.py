"""Predicts the editor that Claude Code 2.1 chooses, and reads the settings with which it shows no diffs."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from isthmus.ide.claude.discovery.finding import CONFIGURATION_VARIABLE, PORT_VARIABLE
from isthmus.ide.cli_choice import START_ADVICE, Announcement, CliChoice, Here, nobody_listens, nothing_here
from isthmus.ide.cli_settings import AUTOMATIC_MODES, home_folder, last_value, read_all
from isthmus.ide.discovery_file import port_number

CLAUDE_CODE = "Claude Code"


def claude_choice(files: Sequence[Announcement], here: Here) -> CliChoice:
    """Return the choice of Claude Code among its usable files. No I/O: the caller reads files and tries ports."""
    cli = CLAUDE_CODE
    value = here.environment.get(PORT_VARIABLE)
    named = port_number(value)
    # It first removes locks whose process it does not see.
    living = [file for file in files if here.is_alive(file)]
    if named is not None:
        lock = next((file for file in living if file.port == named), None)
        if named not in here.open_ports:
            reason = f"nobody listens on port {named}, which {PORT_VARIABLE} names"
            return CliChoice(cli, False, PORT_VARIABLE, named, "", reason, f"unset {PORT_VARIABLE}, or {START_ADVICE}")
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
            return nobody_listens(cli, file, "it tries no other file")
        reason = "the only one that has this folder open; taken with `claude --ide`, or by /ide"
        return CliChoice(cli, True, file.path, file.port, file.editor, reason)
    if fitting:
        listed = ", ".join(f"{file.editor} on port {file.port}" for file in fitting)
        reason = f"{len(fitting)} lock files fit ({listed}), and with `--ide` it takes none when more than one does"
        dead = [file for file in fitting if file.port not in here.open_ports]
        advice = f"remove {' and '.join(file.path for file in dead)}, where nobody listens; or " if dead else ""
        return CliChoice(cli, False, None, None, "", reason, f"{advice}choose one by /ide, or set {PORT_VARIABLE}")
    if living:
        return nothing_here(cli, living, here)
    return CliChoice(cli, False, None, None, "", "there is no lock file of an editor that runs", START_ADVICE)


def claude_remarks(folder: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the restrictions by settings on a Claude Code started in ``folder``, with advice. Blocking."""
    user = Path(environment.get(CONFIGURATION_VARIABLE) or home_folder(environment) / ".claude") / "settings.json"
    managed = "/Library/Application Support/ClaudeCode" if sys.platform == "darwin" else "/etc/claude-code"
    project = folder / ".claude"
    files = (
        user, project / "settings.json", project / "settings.local.json", Path(managed) / "managed-settings.json",
    )  # fmt: skip
    settings = read_all(files)
    mode = last_value(settings, "permissions.defaultMode")
    remarks: tuple[str, ...] = ()
    if any(values.get("disableAllHooks") is True for values in settings):
        remarks = ("disableAllHooks is set: its permission questions are asked in its own terminal alone",)
    if mode is not None and mode not in AUTOMATIC_MODES:
        return remarks
    starts = "it starts in auto mode (2.1.283 and later)" if mode is None else f"it starts in the mode {mode}"
    return (
        f"{starts}, in which it shows no diffs: Shift+Tab changes it, `claude --permission-mode default` or "
        f"permissions.defaultMode = default in {user} starts it in the one that asks",
        *remarks,
    )
