"""Failures of git and of worktrees; each text says what to do."""

from isthmus.errors import IsthmusError


class WorktreeError(IsthmusError):
    """A worktree cannot be made, kept or carried; the text has the reason and advice."""


class GitFailedError(WorktreeError):
    """Git ended with an error. ``output`` is the end of what it wrote to stderr; ``text`` what it wrote to stdout."""

    def __init__(self, command: str, output: str, text: str = "") -> None:
        super().__init__(f"git {command} failed: {output or 'it gave no reason'}")
        self.command = command
        self.output = output
        self.text = text


class GitOutputTooLargeError(WorktreeError):
    """Git printed more than is read."""


class SessionMovedError(WorktreeError):
    """Another machine has gone on with the session; nothing was overwritten there."""
