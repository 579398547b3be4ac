"""A program that runs another one as a user does: as a foreground job of a terminal, below the terminal's shell.

``terminal_job.py PROGRAM [ARGUMENTS]...``. Input and output are its own, and its exit code is the program's.
"""

import fcntl
import os
import pty
import signal
import sys
import termios
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


def run_as_job(program: "Callable[[], NoReturn]") -> int:
    """Act as the shell of a new terminal, run one job in it, and return its exit code as a shell does."""
    os.setsid()
    _, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        program()
    code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(run_as_job(lambda: os.execvp(sys.argv[1], sys.argv[1:])))  # noqa: S606
