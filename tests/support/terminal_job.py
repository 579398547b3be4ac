"""A program that runs another one as a user does: as a foreground job of a terminal, below the terminal's shell.

``terminal_job.py PROGRAM [ARGUMENTS]...``. Input and output are its own, and its exit code is the program's.
"""

import fcntl
import os
import pty
import signal
import sys
import termios


def main() -> int:
    """Act as the shell of a new terminal, and run one job in it."""
    os.setsid()
    _, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    job = os.fork()
    if not job:
        os.setpgid(0, 0)
        os.tcsetpgrp(terminal, os.getpgrp())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606
    return os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])


if __name__ == "__main__":
    code = main()
    sys.exit(code if code >= 0 else 128 - code)
