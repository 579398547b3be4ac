"""The output of a command: what is shown of it, and the file that has all of it.

Takes bytes as they come. The first and the last part are kept for showing; as soon as something in between is dropped,
everything goes to a file as well, up to a limit. Terminal sequences are left out, and of a line that was drawn again
with carriage returns only the last version is shown. No processes and no clock here.
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
    """Collects output. `path` is where it is kept whole when it is too long to show, or beside it when it is taken."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._file: BinaryIO | None = None
        self._file_error = ""
        self.size = 0

    def feed(self, data: bytes) -> None:
        """Take more output."""
        self._keep(data)
        self.size += len(data)
        if len(self._head) < HEAD_BYTES:
            taken = HEAD_BYTES - len(self._head)
            self._head += data[:taken]
            data = data[taken:]
        if data:
            self._tail.append(data)
            self._tail_size += len(data)
        while self._tail and self._tail_size - len(self._tail[0]) >= TAIL_BYTES:
            self._tail_size -= len(self._tail.popleft())

    def close(self) -> None:
        """No more output comes."""
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            except OSError as error:
                self._file_error = error.strerror or str(error)

    @property
    def is_cut(self) -> bool:
        """Whether a part is not shown."""
        return self.size > HEAD_BYTES + TAIL_BYTES

    def text(self) -> str:
        """What is shown: all of it, or its beginning and end with a line between them that says what is missing."""
        head, tail = bytes(self._head), b"".join(self._tail)
        if not self.is_cut:
            return readable(head + tail)
        tail = tail[-TAIL_BYTES:]
        left_out = self.size - len(head) - len(tail)
        return f"{readable(head)}\n[... {left_out} bytes are left out here ...]\n{readable(tail)}"

    def note(self) -> str:
        """Where all of a cut output is; empty when it is shown whole."""
        if not self.is_cut:
            return ""
        if self._file_error:
            return f"[The output has {self.size} bytes; it could not be kept whole: {self._file_error}]"
        if self.size > MAXIMUM_FILE_BYTES:
            return f"[The output has {self.size} bytes; the first {MAXIMUM_FILE_BYTES} of them are in {self._path}]"
        return f"[The output has {self.size} bytes; all of it is in {self._path}]"

    def _create(self) -> int:
        """Return a new file: models use call ids again, and what another call wrote is still to be read."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileExistsError:
            self._path = self._path.with_stem(f"{self._path.stem}-{secrets.token_hex(6)}")
            return os.open(self._path, flags, 0o600)

    def _keep(self, data: bytes) -> None:
        """Append to the file, which is begun when the output gets too long to show."""
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
    """Output as text without terminal sequences and control characters; long lines are cut."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    text = ESCAPE_SEQUENCES.sub("", text)
    if "\b" in text:
        text = _without_backspaces(text)
    text = "\n".join(map(_last_version, text.split("\n")))
    return CONTROL_CHARACTERS.sub("\ufffd", text)


def _last_version(line: str) -> str:
    """What a terminal shows of a line: a carriage return begins it anew. Very long lines lose their middle."""
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
