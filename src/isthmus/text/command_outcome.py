"""Words with which the output of a command says that it has failed, for the tool and for those who show it. Pure."""

import re

EXIT_CODE = "Exit Code: "
SIGNAL = "Signal: "
_FAILURE = re.compile(rf"{EXIT_CODE}[1-9]\d*|{SIGNAL}\d+ \(\w+\)")
_FACTS = 4
"""Maximum number of lines that the tool adds to the output of a command."""


def says_failure(output: str) -> bool:
    """Return whether the last lines of an output say that the command has failed."""
    lines = output.rstrip("\n").rsplit("\n", _FACTS)[-_FACTS:]
    return any(_FAILURE.fullmatch(line) is not None for line in lines)
