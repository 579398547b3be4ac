"""``--debug``: the program's log on stderr at the level debug. Imported only when the option is given."""

import sys
from collections.abc import Mapping
from typing import TextIO, cast

from isthmus.app.logs import Redaction, begin_log, secrets_of


def begin_debugging(environment: Mapping[str, str], *, beside_prompt: bool) -> None:
    """Start logging; secrets of the environment are hidden. ``beside_prompt``: a user types at the same terminal."""
    stream: TextIO | None = None
    if beside_prompt and sys.stdin.isatty() and sys.stderr.isatty():
        from prompt_toolkit.patch_stdout import StdoutProxy

        # Writes above the line that the user is typing, not into it.
        stream = cast("TextIO", StdoutProxy())
    begin_log("text", "debug", Redaction(secrets_of(environment)), stream)
