"""The output of a command: the part that is shown, and the file with all of it.

The first and the last part are kept for display; as soon as the part between them is dropped, all output goes to a
file, up to a limit. Terminal sequences are removed, and of a line that was redrawn with carriage returns only the last
version is shown. Does not use processes or clocks.
"""

import os
import secrets
from collections import deque
from pathlib import Path
from typing import BinaryIO

from isthmus.text.visible import CONTROL_CHARACTERS, ESCAPE_SEQUENCES

HEAD_BYTES = 10_000
TAIL_BYTES = 20_000
MAXIMUM_FILE_BYTES = 50 * 1024 * 1024
MAXIMUM_LINE_CHARACTERS = 4_000


class ShellOutput:
    """Collects output. Output that is too long to show goes to `path` in full, or to a similar path if that exists."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._file: BinaryIO | None = None
        self._file_error = ""
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Add output."""
        self._keep(data)
        self.size += len(data)
        if len(self._head) < HEAD_BYTES:
            room = HEAD_BYTES - len(self._head)
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def close(self) -> None:
        """Close the file at the end of the output."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._file_error = error.strerror or str(error)

    @property
    def is_cut(self) -> bool:
        """Whether a part of the output is not shown."""
        return self.size > HEAD_BYTES + TAIL_BYTES

    def text(self) -> str:
        """Return the whole output, or its beginning and end with a line between them about the omission."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self.is_cut:
            return readable(head + tail)
        tail = tail[-TAIL_BYTES:]
        left_out = self.size - len(head) - len(tail)
        return f"{readable(head)}\n[... {left_out} bytes are left out here ...]\n{readable(tail)}"

    def note(self) -> str:
        """Return a note about the file with the whole output; empty if all of it is shown."""
        if not self.is_cut:
            return ""
        if self._file_error:
            return f"[The output has {self.size} bytes; it could not be kept whole: {self._file_error}]"
        if self.size > MAXIMUM_FILE_BYTES:
            return f"[The output has {self.size} bytes; the first {MAXIMUM_FILE_BYTES} of them are in {self._path}]"
        return f"[The output has {self.size} bytes; all of it is in {self._path}]"

    def _create(self) -> int:
        """Create a new file, because models reuse call ids and the file of the other call is still needed."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileExistsError:
            self._path = self._path.with_stem(f"{self._path.stem}-{secrets.token_hex(6)}")
            return os.open(self._path, flags, 0o600)

    def _keep(self, data: bytes) -> None:
        """Append to the file, which is created when the output becomes too long to show."""
        if self._file_error or self.size + len(data) <= HEAD_BYTES + TAIL_BYTES:
            return
        try:
            if self._file is None:
                if self.size > HEAD_BYTES + TAIL_BYTES:
                    return
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = os.fdopen(self._create(), "wb")
                self._file.write(bytes(self._head) + b"".join(self._tail))
            self._file.write(data[: max(0, MAXIMUM_FILE_BYTES - self.size)])
        except OSError as error:
            self._file_error = error.strerror or str(error)
            self.close()


def readable(data: bytes) -> str:
    """Return output as text without terminal sequences and control characters, with long lines cut."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    text = ESCAPE_SEQUENCES.sub("", text)
    if "\b" in text:
        text = _without_backspaces(text)
    text = "\n".join(map(_last_version, text.split("\n")))
    return CONTROL_CHARACTERS.sub("\ufffd", text)


def _last_version(line: str) -> str:
    """Return the line as a terminal shows it: from the last carriage return on. Very long lines lose their middle."""
    if "\r" in line:
        line = line.rstrip("\r").rpartition("\r")[2]
    if len(line) > MAXIMUM_LINE_CHARACTERS:
        half = MAXIMUM_LINE_CHARACTERS // 2
        line = f"{line[:half]}[... {len(line) - 2 * half} characters are left out here ...]{line[-half:]}"
    return line


def _without_backspaces(text: str) -> str:
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept and kept[-1] != "\n":
            kept.pop()
    return "".join(kept)
