"""The history of the prompt in a file, for prompt_toolkit.

Imports prompt_toolkit, so import this module only to prompt.
"""

import os
from pathlib import Path

from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from typing_extensions import override

from isthmus.terminal.prompt.pasting import Pasting


class _PromptHistory(FileHistory):
    """History in a file, with the whole of every pasted text. Images are not kept: their stand-ins become text."""

    def __init__(self, file: Path, pasting: Pasting) -> None:
        self._pasting = pasting
        super().__init__(file)

    @override
    def append_string(self, string: str) -> None:
        super().append_string(self._pasting.texts.unfold(string))

    @override
    def store_string(self, string: str) -> None:
        super().store_string(self._pasting.images.forgotten(string))


def prompt_history(path: Path | None, pasting: Pasting) -> History:
    """Return the history in the file ``path`` (mode 0600); in memory if that is None or cannot be used."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
        finally:
            os.close(descriptor)
    except OSError:
        return InMemoryHistory()
    return _PromptHistory(path, pasting)
