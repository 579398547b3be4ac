"""Standard input and output as the pipes to whoever started us, for a protocol alone; nothing of what goes through."""

import os
import stat
from typing import Final

from isthmus.ide.editor import EditorError

_NO_PIPES: Final = (
    "--editor stdio is started by the plugin of an editor, with pipes; docs/reference/editor-port.md tells how"
)


def take_standard_streams() -> tuple[int, int]:
    """File descriptors for frames: what standard input and output were. What is printed goes to standard error now.

    Raises:
        EditorError: they are a terminal, or files.
    """
    if not all(stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) for kind in (os.fstat(0).st_mode, os.fstat(1).st_mode)):
        raise EditorError(_NO_PIPES)
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing
