"""A process tree as real CLIs expect it above themselves: an editor, a terminal in it, and a shell in that."""

import sys
from pathlib import Path

_EDITOR = """
import os, shutil, subprocess, sys
source, command = sys.argv[1], sys.argv[2:]
folder, name = os.path.split(source)
shutil.copy2(source, os.path.join(folder, f"gemini-ide-server-{os.getpid()}-{name.rpartition('-')[2]}"))
terminal = [sys.executable, "-c", "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"]
sys.exit(subprocess.call([*terminal, "sh", "-c", '"$@"; exit $?', "sh", *command]))
"""


def below_editor(discovery_file: Path) -> list[str]:
    """Return a command prefix that runs a command below an editor with this discovery file."""
    return [sys.executable, "-c", _EDITOR, str(discovery_file)]
