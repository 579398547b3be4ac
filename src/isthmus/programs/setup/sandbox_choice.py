"""Chooses the sandbox that options, environment and settings ask for, if it works on this machine.

The user is warned before anything runs, because a requested but missing sandbox must not seem to protect them.
"""

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.sandbox.confinement import Confinement
    from isthmus.sandbox.finding import SandboxFinder
    from isthmus.sandbox.settings import CommandSandbox
    from isthmus.tools.shell.shell_sandbox import ShellSandbox

CHOICES = ("auto", "require", "off")
SANDBOX_STATUS = 44
"""Exit status when a sandbox is required and does not work, the same as Gemini CLI's."""
VARIABLE = "GEMINI_SANDBOX"


_AS_ROOT = (
    "shell commands run in the sandbox as root: without capabilities, but with every file of root in the workspace; run"
    " Isthmus as an ordinary user where you can"
)


class SandboxRequiredError(click.ClickException):
    """A sandbox is required but does not work here; nothing was started."""

    exit_code = SANDBOX_STATUS
    kind = "FatalSandboxError"


@record
class SandboxSetup:
    """Sandbox of this machine. ``commands`` is None if shell commands run without one.

    ``level`` describes the confinement of commands; ``warnings`` are shown to the user before anything runs.
    """

    finder: "SandboxFinder"
    commands: "ShellSandbox | None"
    level: str
    warnings: tuple[str, ...] = ()
    trials: "Confinement | None" = None
    """Sandbox in which commands are tried before a user is asked about them; None to try none."""


def decide_sandbox(
    given: str | None,
    settings: "CommandSandbox",
    environment: Mapping[str, str],
    *,
    home: Path,
    data_dir: Path,
    allows_by_effect: bool = False,
) -> SandboxSetup:
    """Decide on the sandbox; look for bubblewrap if a sandbox is wanted for commands, or to try them.

    Raises:
        SandboxRequiredError: a sandbox is required but does not work.
    """
    from isthmus.sandbox.support import NoSandbox

    setup = _decide_commands(given, settings, environment, home=home, data_dir=data_dir)
    if not allows_by_effect:
        return setup
    found = setup.finder.find()
    if not isinstance(found, NoSandbox):
        return replace(setup, trials=found)
    warning = (
        f"isthmus.approval.allowByEffect needs a sandbox, so you are asked about commands as usual: {found.reason}"
    )
    return replace(setup, warnings=(*setup.warnings, warning))


def _decide_commands(
    given: str | None, settings: "CommandSandbox", environment: Mapping[str, str], *, home: Path, data_dir: Path
) -> SandboxSetup:
    from isthmus.files.locations import runtime_directory
    from isthmus.sandbox.confinement import describe_policy
    from isthmus.sandbox.finding import SandboxFinder
    from isthmus.sandbox.mounts import PrivatePlaces
    from isthmus.sandbox.policy import Demand
    from isthmus.sandbox.support import NoSandbox
    from isthmus.tools.shell.shell_sandbox import ShellSandbox

    finder = SandboxFinder(PrivatePlaces(home, (data_dir, runtime_directory(environment))), environment)
    if not _is_wanted(given, settings, environment):
        return SandboxSetup(finder, None, "none; --sandbox confines shell commands")
    policy = settings.policy
    found = finder.find()
    is_required = given == "require" or policy.demand is Demand.REQUIRE
    if not isinstance(found, NoSandbox):
        level = f"{found.bubblewrap}; {describe_policy(policy)}"
        notes = (*policy.notes, *((_AS_ROOT,) if is_required and _user_id() == 0 else ()))
        return SandboxSetup(finder, ShellSandbox(found, policy), level, notes)
    if is_required:
        who = "--sandbox=require" if given == "require" else "tools.sandbox in your settings"
        raise SandboxRequiredError(
            f"{who} requires a sandbox for shell commands, but it does not work here: {found.reason}."
            " To run them without a sandbox use --sandbox=off"
        )
    warning = f"shell commands run WITHOUT the requested sandbox: {found.reason}"
    return SandboxSetup(finder, None, f"NONE, although requested: {found.reason}", (*policy.notes, warning))


def _user_id() -> int:
    return os.geteuid() if os.name == "posix" else -1


def say_warnings(sandbox: SandboxSetup) -> None:
    """Print the warnings about the sandbox on stderr."""
    for warning in sandbox.warnings:
        sys.stderr.write(f"isthmus: {warning}\n")


def _is_wanted(given: str | None, settings: "CommandSandbox", environment: Mapping[str, str]) -> bool:
    """Return whether a sandbox is wanted: by the option, otherwise Gemini CLI's variable, otherwise the settings.

    The variable holds a truth value or the name of a sandbox.
    """
    if given is not None:
        return given != "off"
    variable = environment.get(VARIABLE, "").strip().lower()
    if variable:
        return variable not in ("0", "false")
    return settings.is_wanted is True
