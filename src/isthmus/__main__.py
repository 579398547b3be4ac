"""The program. Says its version without loading anything else; all the rest is in ``isthmus.cli``."""

import gc
import os
import sys


def main() -> None:
    """Run the command line and exit with its status."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from isthmus import __version__

        try:
            print(__version__, flush=True)
        except OSError as error:
            sys.stderr.write(f"isthmus: the output cannot be written: {error.strerror}\n")
            os._exit(1)  # what is buffered would fail again
        return
    try:
        from isthmus.cli.main import run

        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130  # Ctrl-C while the program was still being loaded
    # What is left goes with the process: looking through all modules for garbage takes longer than many a command.
    gc.freeze()
    sys.exit(status)


if __name__ == "__main__":
    main()
