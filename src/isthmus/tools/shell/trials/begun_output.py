"""The output of a command in a sandbox, by which it is known whether the command was started at all."""

from isthmus.tools.shell.shell_output import ShellOutput


class BegunOutput:
    """Output of a command without its first line, a mark which says that it was started, and not only bubblewrap."""

    def __init__(self, output: ShellOutput, mark: str) -> None:
        self._output = output
        self._before = b""
        self.mark = mark
        self.has_begun = False

    @property
    def size(self) -> int:
        """Size in bytes."""
        return self._output.size

    def feed(self, data: bytes) -> None:
        """Add output."""
        if not self.has_begun:
            self._before += data
            first, end, data = self._before.partition(b"\n")
            self.has_begun = bool(end) and first == self.mark.encode()
        if self.has_begun and data:
            self._output.feed(data)
