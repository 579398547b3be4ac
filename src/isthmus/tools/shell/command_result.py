"""The result of a command that has ended, for the user and for the model. Pure."""

import signal
from collections.abc import Sequence

from isthmus.development_tool import ToolOutput
from isthmus.text.command_outcome import EXIT_CODE, SIGNAL
from isthmus.text.visible import printable
from isthmus.tools.port.base import ToolSucceeded
from isthmus.tools.shell.shell_output import ShellOutput


def result_of(output: ShellOutput, code: int | None, about_processes: Sequence[str]) -> ToolSucceeded:
    """Return the output with the exit code or signal, and lines about the processes that outlived the command."""
    text = output.text().rstrip("\n")
    facts: list[str] = []
    if code is not None and code < 0:
        facts.append(f"{SIGNAL}{-code} ({_signal_name(-code)})")
    elif code:
        facts.append(f"{EXIT_CODE}{code}")
    facts += about_processes
    if note := output.note():
        facts.append(printable(note))
    shown = "\n".join((text, *facts) if text.strip() else facts)
    for_model = "\n".join((f"Output: {text or '(empty)'}", *facts))
    return ToolSucceeded(ToolOutput(text=shown, exit_code=code or None), for_model)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
